package s3

import (
	"context"
	"net/http"
	"net/url"
)

// EnableVersions makes the bucket keep what is deleted.
func (s *Store) EnableVersions(ctx context.Context) error {
	res, _, err := s.do(ctx, call{
		method: http.MethodPut, query: url.Values{"versioning": {""}},
		body: []byte(`<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`),
	})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// CountVersions counts the versions and the marks of deletions below a prefix.
func (s *Store) CountVersions(ctx context.Context, prefix string) (n int, err error) {
	err = s.eachVersion(ctx, prefix, func(version) error { n++; return nil })
	return n, err
}
