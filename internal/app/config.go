package app

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Config is every setting of Homeport. A setting NAME is read from the file
// named by HOMEPORT_CONFIG (lines NAME=value), then from HOMEPORT_NAME, then
// from its flag. Secrets can also come from a file named by HOMEPORT_NAME_FILE.
// Every zero value works.
type Config struct {
	Addr          string `name:"ADDR" default:"127.0.0.1:8080" doc:"address to serve on"`
	PublicURL     string `name:"PUBLIC_URL" doc:"address that browsers use; empty: http://localhost and the port of ADDR"`
	APIURL        string `name:"API_URL" doc:"own address of the API; empty: /api below the public one"`
	StateDir      string `name:"STATE_DIR" doc:"folder of all state; empty: /var/lib/homeport as root, else below the home folder"`
	DatabaseURL   string `name:"DATABASE_URL" secret:"true" doc:"PostgreSQL to use; empty: an embedded one in the state folder"`
	PostgresBin   string `name:"POSTGRES_BIN" doc:"folder of the embedded server's programs; empty: looked for"`
	MetricsAddr   string `name:"METRICS_ADDR" default:"127.0.0.1:9090" doc:"address of /metrics and pprof; 'off' for none"`
	PodHost       string `name:"POD_HOST" default:"localhost" doc:"domain below which pods have their names"`
	DNSServer     string `name:"DNS_SERVER" doc:"primary name server that takes the pods' names by dynamic updates (RFC 2136), host or host:port; empty: POD_HOST has a wildcard record"`
	DNSZone       string `name:"DNS_ZONE" doc:"zone of that server; empty: POD_HOST"`
	DNSKey        string `name:"DNS_KEY" secret:"true" doc:"key that the zone lets update, [algorithm:]name:secret as nsupdate takes it"`
	SSHPorts      string `name:"SSH_PORTS" default:"20000-29999" doc:"range of the pods' SSH ports where we choose them"`
	BlobURL       string `name:"BLOB_URL" doc:"volume store; empty: a folder in the state folder; file:///path for another"`
	KeepVersions  string `name:"KEEP_VERSIONS" default:"3,24,7" doc:"versions of a volume that are kept besides the newest: so many before it, one of each of so many hours, one of each of so many days"`
	KeepGarbage   string `name:"KEEP_GARBAGE" default:"24h" doc:"how long objects that a volume does not need any more stay in the store, at least 24h: the age of the oldest backup of the database that may be restored, unless the bucket keeps versions"`
	S3Endpoint    string `name:"S3_ENDPOINT" doc:"origin of an S3 service that keeps the volumes, such as https://s3.eu-central-1.amazonaws.com; empty: a folder"`
	S3Region      string `name:"S3_REGION" default:"us-east-1" doc:"region of the bucket; auto at Cloudflare R2"`
	S3Bucket      string `name:"S3_BUCKET" doc:"bucket for the volumes, for Homeport alone or with a prefix of its own"`
	S3Prefix      string `name:"S3_PREFIX" doc:"begins the name of every object in the bucket; empty: none"`
	S3KeyID       string `name:"S3_KEY_ID" doc:"id of the key that may read, write, list and delete there"`
	S3Secret      string `name:"S3_SECRET" secret:"true" doc:"the key's secret; it never leaves the nodes"`
	S3PathStyle   string `name:"S3_PATH_STYLE" default:"auto" doc:"bucket in the path instead of the host's name: auto (where the endpoint is an address or this machine), on or off"`
	SMTPURL       string `name:"SMTP_URL" secret:"true" doc:"mail server, smtp://user:password@host:port; empty: a local mailbox page"`
	MailFrom      string `name:"MAIL_FROM" default:"Homeport <no-reply@localhost>" doc:"sender of mails"`
	SupportEmail  string `name:"SUPPORT_EMAIL" default:"support@localhost" doc:"shown where users may need help"`
	OperatorEmail string `name:"OPERATOR_EMAIL" doc:"who is told of a cloud that fails or whose account is empty; empty: only the log and the metrics say so"`
	Operators     string `name:"OPERATORS" doc:"e-mail addresses, with commas between, of those who see /operator once they signed in; empty: nobody"`
	SalesEmail    string `name:"SALES_EMAIL" default:"sales@localhost" doc:"address of Talk to Sales"`
	Testimonials  string `name:"TESTIMONIALS" doc:"JSON file of the landing page's three testimonials, each {quote, name, work}; empty: samples, marked as such"`
	StripeKey     string `name:"STRIPE_SECRET_KEY" secret:"true" doc:"Stripe account that collects the money; empty: the built-in test checkout, on this machine only"`
	StripeWebhook string `name:"STRIPE_WEBHOOK_SECRET" secret:"true" doc:"signing secret of Stripe's endpoint /webhooks/stripe (whsec_...)"`
	StripeBase    string `name:"STRIPE_API_BASE" doc:"address of Stripe's API; empty: https://api.stripe.com"`
	StripeTax     string `name:"STRIPE_TAX" default:"none" doc:"tax on top of the prices: none, or automatic by Stripe Tax"`
	StripeTest    string `name:"STRIPE_TEST_RENTS" default:"no" doc:"whether test money may rent at real clouds: no, or yes for a stage where those who try things may cost real money"`
	MasterKey     string `name:"MASTER_KEY" secret:"true" doc:"keys of 64 hex digits, separated by commas, that seal secrets in the database; empty: in master.key of the state folder, drawn once"`
	HyperstackKey string `name:"HYPERSTACK_API_KEY" secret:"true" doc:"key of the Hyperstack account to rent from; empty: it is not rented from"`
	HyperstackURL string `name:"HYPERSTACK_BASE_URL" doc:"address of Hyperstack's API; empty: https://infrahub-api.nexgencloud.com/v1"`
	LambdaKey     string `name:"LAMBDA_API_KEY" secret:"true" doc:"key of the Lambda Cloud account to rent from; empty: it is not rented from"`
	LambdaBase    string `name:"LAMBDA_BASE_URL" doc:"address of Lambda Cloud's API; empty: https://cloud.lambda.ai/api/v1"`
	PrimeKey      string `name:"PRIME_API_KEY" secret:"true" doc:"key of the Prime Intellect account to rent from; empty: it is not rented from"`
	PrimeBase     string `name:"PRIME_BASE_URL" doc:"address of Prime Intellect's API; empty: https://api.primeintellect.ai/api/v1"`
	RunpodKey     string `name:"RUNPOD_API_KEY" secret:"true" doc:"key of the Runpod account to rent from; empty: it is not rented from"`
	RunpodBase    string `name:"RUNPOD_BASE_URL" doc:"address of Runpod's API; empty: https://api.runpod.io/v2"`
	ShadeformKey  string `name:"SHADEFORM_API_KEY" secret:"true" doc:"key of the Shadeform account to rent from; empty: it is not rented from"`
	ShadeformBase string `name:"SHADEFORM_BASE_URL" doc:"address of Shadeform's API; empty: https://api.shadeform.ai/v1"`
	VastKey       string `name:"VAST_API_KEY" secret:"true" doc:"key of the Vast.ai account to rent from; empty: it is not rented from"`
	VastBase      string `name:"VAST_BASE_URL" doc:"address of Vast.ai's API; empty: https://console.vast.ai/api"`
	VerdaKey      string `name:"VERDA_API_KEY" secret:"true" doc:"client_id:client_secret of the Verda account to rent from; empty: it is not rented from"`
	VerdaBase     string `name:"VERDA_BASE_URL" doc:"address of Verda's API; empty: https://api.verda.com/v1"`
	DockerHosts   string `name:"DOCKER_HOSTS" doc:"JSON file that describes own GPU machines to rent out through their Docker engines; empty: none"`
	Sandbox       string `name:"SANDBOX" default:"auto" doc:"whether sandbox pods are for rent: auto (where no real cloud is), on or off"`
	SandboxMarket string `name:"SANDBOX_MARKET" default:"constant" doc:"prices of the sandbox clouds: constant or walk"`
	SandboxNet    string `name:"SANDBOX_NETWORK" default:"none" doc:"network of sandbox pods: none"`
	AgentBinary   string `name:"AGENT_BINARY" doc:"the pod agent's program; empty: homeport-agent beside this program"`
	AgentDir      string `name:"AGENT_DIR" doc:"folder of the agents that real machines fetch, homeport-agent-linux-ARCH; empty: beside this program"`
	Breaker       string `name:"BREAKER" default:"5/5m" doc:"failed calls to a cloud, and in which time, that take it off sale until it works again"`
	Preflight     string `name:"PREFLIGHT" default:"40/2" doc:"MB a second that a machine's disk must write and its network read before its pod is ready, 0 = any; 'off' looks at no GPU either"`
	Signup        string `name:"SIGNUP" default:"open" doc:"who may sign up: open or invited"`
	Markup        string `name:"MARKUP" default:"1.30" doc:"list price over upstream price, at least 1.20"`
	MinRunway     string `name:"MIN_RUNWAY" default:"0s" doc:"runway a wallet must have for a new pod"`
	LogLevel      string `name:"LOG_LEVEL" default:"info" doc:"debug, info, warn or error"`
	Failpoint     string `name:"FAILPOINT" doc:"kill the process at this failpoint (tests; loopback only)"`
	Config        string `name:"CONFIG" doc:"file with settings"`
}

// prefix begins the name of every variable.
const prefix = "HOMEPORT_"

// outside are variables with the prefix that are not settings of the server.
var outside = []string{"HOMEPORT_TEST_DATABASE_URL", "HOMEPORT_TEST_SKIP_S3"}

// Load reads the settings from an environment ("NAME=value" lines) and from
// flags (by setting name). Its error names every mistake at once.
func Load(environ []string, flags map[string]string) (Config, error) {
	var c Config
	env := map[string]string{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, prefix) && !slices.Contains(outside, name) {
			env[strings.TrimPrefix(name, prefix)] = value
		}
	}
	var errs []error
	values, err := readFile(env["CONFIG"])
	errs = append(errs, err)
	for name, value := range env {
		values[name] = value
	}
	for name, value := range flags {
		values[name] = value
	}
	errs = append(errs, c.fill(values)...)
	c.derive()
	errs = append(errs, c.check()...)
	return c, errors.Join(errs...)
}

// fill sets each field from its value, its file or its default, and refuses
// names that no field has.
func (c *Config) fill(values map[string]string) []error {
	var errs []error
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name := tag.Get("name")
		value, ok := values[name]
		delete(values, name)
		if file, isFile := values[name+"_FILE"]; isFile && tag.Get("secret") == "true" {
			delete(values, name+"_FILE")
			text, err := os.ReadFile(file)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s%s_FILE: %w", prefix, name, err))
			}
			value, ok = strings.TrimSpace(string(text)), true
		}
		if !ok || value == "" {
			value = tag.Get("default")
		}
		v.Field(i).SetString(value)
	}
	for name := range values {
		errs = append(errs, fmt.Errorf("%s%s is not a setting", prefix, name))
	}
	return errs
}

func readFile(path string) (map[string]string, error) {
	values := map[string]string{}
	if path == "" {
		return values, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return values, fmt.Errorf("%sCONFIG: %w", prefix, err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return values, fmt.Errorf("%s: %q is not NAME=value", path, line)
		}
		values[strings.TrimPrefix(strings.TrimSpace(name), prefix)] = strings.TrimSpace(value)
	}
	return values, nil
}

// derive fills what follows from other settings.
func (c *Config) derive() {
	if c.StateDir == "" {
		c.StateDir = defaultStateDir()
	}
	if abs, err := filepath.Abs(c.StateDir); err == nil {
		c.StateDir = abs
	}
	if c.PublicURL == "" {
		host, port, err := net.SplitHostPort(c.Addr)
		if err == nil && (loopback(host) || host == "") {
			host = "localhost"
		}
		c.PublicURL = "http://" + net.JoinHostPort(host, port)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	c.APIURL = strings.TrimRight(c.APIURL, "/")
	if c.DNSZone == "" {
		c.DNSZone = c.PodHost
	}
}

func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/homeport"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "homeport")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return filepath.Join(home, ".local", "state", "homeport")
}

// upper is an adapter's name as its settings have it.
func upper(name string) string { return strings.ToUpper(name) }

// loopback reports whether a host is this machine by its name.
func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// sshPorts are the first and the last port of the pods' range.
func (c *Config) sshPorts() (first, last int, err error) {
	if n, err := fmt.Sscanf(c.SSHPorts, "%d-%d", &first, &last); err != nil || n != 2 || first < 1024 || last > 65535 || first > last {
		return 0, 0, fmt.Errorf("%q is not a range such as 20000-29999", c.SSHPorts)
	}
	return first, last, nil
}

// publicLoopback reports whether browsers reach Homeport on this machine only.
func (c *Config) publicLoopback() bool {
	u, err := url.Parse(c.PublicURL)
	return err == nil && loopback(u.Hostname())
}

// listenLoopback reports whether the server listens on this machine only.
func (c *Config) listenLoopback() bool {
	host, _, err := net.SplitHostPort(c.Addr)
	return err == nil && loopback(host)
}

// doors reports whether the development doors may exist at all: each also asks
// for its production setting to be empty.
func (c *Config) doors() bool { return c.publicLoopback() && c.listenLoopback() }
