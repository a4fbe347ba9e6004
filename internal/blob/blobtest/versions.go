package blobtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A Version is one that the service keeps of an object, or the mark of its
// deletion.
type Version struct {
	Key, ID string
	Mark    bool
}

// Versions lists what the service keeps below a prefix of the bucket, which is
// at most one page, asked as an operator would ask.
func (s *Server) Versions(prefix string) (all []Version) {
	s.t.Helper()
	type listed struct {
		Key       string
		VersionID string `xml:"VersionId"`
	}
	var page struct {
		Version, DeleteMarker []listed
		IsTruncated           bool
	}
	text := s.ask(http.MethodGet, "", url.Values{"versions": {""}, "prefix": {prefix}}, nil)
	if err := xml.Unmarshal(text, &page); err != nil || page.IsTruncated {
		s.t.Fatalf("list versions: %v, or more than a page", err)
	}
	for _, v := range page.Version {
		all = append(all, Version{Key: v.Key, ID: v.VersionID})
	}
	for _, v := range page.DeleteMarker {
		all = append(all, Version{Key: v.Key, ID: v.VersionID, Mark: true})
	}
	return all
}

// ReadVersion returns the bytes of a version.
func (s *Server) ReadVersion(v Version) []byte {
	s.t.Helper()
	return s.ask(http.MethodGet, v.Key, url.Values{"versionId": {v.ID}}, nil)
}

// enableVersions makes the bucket keep what is deleted.
func (s *Server) enableVersions() {
	s.t.Helper()
	s.ask(http.MethodPut, "", url.Values{"versioning": {""}},
		[]byte(`<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`))
}

// ask makes one call in the operator's name.
func (s *Server) ask(method, key string, query url.Values, body []byte) []byte {
	s.t.Helper()
	address := s.Endpoint + "/" + s.Bucket + "/" + key + "?" + query.Encode()
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	creds := aws.Credentials{AccessKeyID: s.KeyID, SecretAccessKey: s.Secret}
	if err := v4.NewSigner().SignHTTP(s.t.Context(), creds, req, hash, "s3", s.Region, time.Now()); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		s.t.Fatalf("%s %s: status %d, %v: %s", method, key, res.StatusCode, err, text)
	}
	return text
}
