// Package s3 keeps objects in a bucket of a service that speaks S3: AWS,
// Cloudflare R2, MinIO, Backblaze B2 and others. Whoever moves an object
// without being this node gets a presigned URL, bound to the key, the method,
// the expiry and, for a write, the length and the SHA-256 of the bytes. What of
// that a service really enforces is found out by Probe and told to Use.
//
// What always holds: no credential leaves this process; an object is asked for
// again when the service fails, but never for ever; every error is a fault of
// blob or says what to mend, and none quotes a signature.
package s3

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// maxObject is the size in bytes of the largest object a grant may write.
const maxObject = 64 << 20

// Times of a call.
const (
	answerWithin = 30 * time.Second // for the first byte of an answer
	stallAfter   = 30 * time.Second // without a byte, a transfer is broken off
	dialWithin   = 10 * time.Second
)

// Config says where the objects lie.
type Config struct {
	Endpoint  string // origin, such as https://s3.eu-central-1.amazonaws.com
	Region    string // as the service wants it in signatures
	Bucket    string
	Prefix    string // begins the name of every object, without a slash at its end; empty: none
	KeyID     string
	Secret    string
	PathStyle bool // the bucket is the first segment of the path, not a part of the host's name

	Wall      func() time.Time  // the wall clock
	Transport http.RoundTripper // nil: one of its own
}

// Features are what a service enforces. The zero value is the weakest that is
// worked with.
type Features struct {
	Conditional bool `json:"conditional"` // it refuses to overwrite an object when asked to
	Checksum    bool `json:"checksum"`    // it refuses other bytes than the signed SHA-256 names
	Versions    bool `json:"versions"`    // it keeps what is deleted until each version is purged
}

// A Store is one bucket. It is safe for concurrent use.
type Store struct {
	config   Config
	origin   *url.URL // with the bucket
	signer   *v4.Signer
	creds    aws.Credentials
	client   *http.Client
	features atomic.Pointer[Features]
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// New returns the store of a bucket, without asking the service. Until Use says
// otherwise it relies on all features but versions.
func New(c Config) (*Store, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("the endpoint %q is not an origin such as https://s3.eu-central-1.amazonaws.com", c.Endpoint)
	}
	if u.Scheme == "http" && !private(u.Hostname()) {
		return nil, errors.New("the endpoint is http, which is for private addresses only; use https")
	}
	if !bucketName.MatchString(c.Bucket) {
		return nil, fmt.Errorf("%q is not a bucket's name", c.Bucket)
	}
	if c.Prefix != "" && checkKey(c.Prefix) != nil || len(c.Prefix) > 200 {
		return nil, fmt.Errorf("the prefix %q is not a name such as homeport or a/b", c.Prefix)
	}
	if c.Region == "" || c.KeyID == "" || c.Secret == "" {
		return nil, errors.New("region, key id and secret are needed")
	}
	u.Path = "/"
	if c.PathStyle {
		u.Path = "/" + c.Bucket + "/"
	} else {
		u.Host = c.Bucket + "." + u.Host
	}
	s := &Store{
		config: c, origin: u,
		signer: v4.NewSigner(func(o *v4.SignerOptions) {
			o.DisableURIPathEscaping = true // S3 signs the path as it is sent
			o.DisableHeaderHoisting = true  // services look for what binds a write in the headers
		}),
		creds:  aws.Credentials{AccessKeyID: c.KeyID, SecretAccessKey: c.Secret},
		client: &http.Client{Transport: c.Transport, CheckRedirect: refuseRedirect},
	}
	if c.Transport == nil {
		s.client.Transport = newTransport()
	}
	s.Use(Features{Conditional: true, Checksum: true})
	return s, nil
}

// Use says what the service enforces, as Probe found it.
func (s *Store) Use(f Features) { s.features.Store(&f) }

// Features are those in use.
func (s *Store) Features() Features { return *s.features.Load() }

// Place names the bucket and prefix, without any credential.
func (s *Store) Place() string {
	return "s3 " + strings.TrimSuffix(s.config.Endpoint, "/") + "/" + s.config.Bucket + "/" + s.config.Prefix
}

// Address is the host and port at which grants are used.
func (s *Store) Address() string {
	if s.origin.Port() != "" {
		return s.origin.Host
	}
	if s.origin.Scheme == "http" {
		return net.JoinHostPort(s.origin.Hostname(), "80")
	}
	return net.JoinHostPort(s.origin.Hostname(), "443")
}

// Path is where restic finds the objects whose keys begin with prefix and a
// slash, as it wants it after -r.
func (s *Store) Path(prefix string) string {
	return "s3:" + strings.TrimSuffix(s.config.Endpoint, "/") + "/" + s.config.Bucket + "/" + s.name(strings.Trim(prefix, "/"))
}

// name is the object's name in the bucket.
func (s *Store) name(key string) string {
	if s.config.Prefix == "" {
		return key
	}
	return s.config.Prefix + "/" + key
}

// checkKey refuses keys that the contract does not allow.
func checkKey(key string) error {
	if key == "" || len(key) > 512 {
		return fmt.Errorf("store: bad key %q", key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment[0] == '.' || strings.ContainsAny(segment, "\x00\\") {
			return fmt.Errorf("store: bad key %q", key)
		}
	}
	return nil
}

// private reports whether a host is this machine or inside a private network.
func private(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || ip.IsPrivate())
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialWithin}).DialContext
	t.MaxIdleConnsPerHost = 32
	t.ResponseHeaderTimeout = answerWithin
	t.ExpectContinueTimeout = 5 * time.Second
	t.DisableCompression = true // an object's bytes are what is stored
	return t
}

// refuseRedirect keeps signed requests where they were sent.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
