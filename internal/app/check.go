package app

import (
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/dns"
	"homeport.dev/homeport/internal/masterkey"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/payment/stripe"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/volume"
)

// check names everything that is wrong with the settings.
func (c *Config) check() []error {
	errs := slices.Concat(c.checkStripe(), c.checkClouds(), c.checkPods(), c.checkStore())
	bad := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s%s: %s", prefix, name, fmt.Sprintf(format, args...)))
	}
	for name, addr := range map[string]string{"ADDR": c.Addr, "METRICS_ADDR": c.MetricsAddr} {
		if _, _, err := net.SplitHostPort(addr); err != nil && !(name == "METRICS_ADDR" && addr == "off") {
			bad(name, "%q is not host:port", addr)
		}
	}
	for name, text := range map[string]string{"PUBLIC_URL": c.PublicURL, "API_URL": c.APIURL} {
		if err := checkOrigin(text); err != nil && text != "" {
			bad(name, "%v", err)
		}
	}
	for name, text := range map[string]string{"SUPPORT_EMAIL": c.SupportEmail, "SALES_EMAIL": c.SalesEmail, "MAIL_FROM": c.MailFrom} {
		if _, err := mail.ParseAddress(text); err != nil {
			bad(name, "%q is not a mail address", text)
		}
	}
	if !c.publicLoopback() && c.SMTPURL == "" {
		bad("SMTP_URL", "a mail server is needed when the public address is not this machine")
	}
	if err := masterkey.Parse(c.MasterKey, prefix+"MASTER_KEY"); c.MasterKey != "" && err != nil {
		bad("MASTER_KEY", "%v", err)
	}
	for name, one := range map[string]struct {
		value string
		of    []string
	}{
		"SANDBOX_MARKET": {c.SandboxMarket, []string{"constant", "walk"}}, "SANDBOX_NETWORK": {c.SandboxNet, []string{"none"}},
		"S3_PATH_STYLE": {c.S3PathStyle, []string{"auto", "on", "off"}},
		"SANDBOX":       {c.Sandbox, []string{"auto", "on", "off"}},
		"SIGNUP":        {c.Signup, []string{"open", "invited"}}, "STRIPE_TAX": {c.StripeTax, []string{"none", "automatic"}},
		"STRIPE_TEST_RENTS": {c.StripeTest, []string{"no", "yes"}},
	} {
		if !slices.Contains(one.of, one.value) {
			bad(name, "%q is not one of %s", one.value, strings.Join(one.of, ", "))
		}
	}
	if _, err := volume.ParseRetention(c.KeepVersions); err != nil {
		bad("KEEP_VERSIONS", "%v", err)
	}
	if _, err := operator.ParseEmails(c.Operators); err != nil {
		bad("OPERATORS", "%v", err)
	}
	if _, err := mail.ParseAddress(c.OperatorEmail); c.OperatorEmail != "" && err != nil {
		bad("OPERATOR_EMAIL", "%q is not a mail address", c.OperatorEmail)
	}
	if _, err := readTestimonials(c.Testimonials); err != nil {
		bad("TESTIMONIALS", "%v", err)
	}
	if err := new(slog.LevelVar).UnmarshalText([]byte(c.LogLevel)); err != nil {
		bad("LOG_LEVEL", "%q is not a level", c.LogLevel)
	}
	if c.Failpoint != "" && !c.doors() {
		bad("FAILPOINT", "failpoints are for servers on loopback only")
	}
	return errs
}

// checkPods holds the numbers by which pods are rented.
func (c *Config) checkPods() (errs []error) {
	if _, _, err := c.sshPorts(); err != nil {
		errs = append(errs, fmt.Errorf("%sSSH_PORTS: %w", prefix, err))
	}
	if _, err := c.breaker(); err != nil {
		errs = append(errs, fmt.Errorf("%sBREAKER: %w", prefix, err))
	}
	if _, err := c.preflight(); err != nil {
		errs = append(errs, fmt.Errorf("%sPREFLIGHT: %w", prefix, err))
	}
	if _, err := c.markup(); err != nil {
		errs = append(errs, fmt.Errorf("%sMARKUP: %w", prefix, err))
	}
	if d, err := time.ParseDuration(c.MinRunway); err != nil || d < 0 || d > 24*time.Hour {
		errs = append(errs, fmt.Errorf("%sMIN_RUNWAY: %q is not a duration up to 24h", prefix, c.MinRunway))
	}
	if _, err := c.nameServer(clock.New()); err != nil {
		errs = append(errs, fmt.Errorf("%sDNS_SERVER: %w", prefix, err))
	}
	return errs
}

// nameServer is where the pods' names are published, nil where nothing is asked
// to be.
func (c *Config) nameServer(clk *clock.Clock) (*dns.Server, error) {
	if c.DNSServer == "" {
		if c.DNSKey != "" {
			return nil, fmt.Errorf("%sDNS_KEY is set, and the server that it is for is not", prefix)
		}
		return nil, nil
	}
	zone := strings.Trim(c.DNSZone, ".")
	if c.PodHost != zone && !strings.HasSuffix(c.PodHost, "."+zone) {
		return nil, fmt.Errorf("the pods' domain %s does not lie in the zone %s", c.PodHost, zone)
	}
	return dns.NewServer(c.DNSServer, zone, c.DNSKey, clk)
}

// checkStripe holds the guards of real money: no half of a configuration, no
// live key where anybody on the machine could listen in.
func (c *Config) checkStripe() (errs []error) {
	bad := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s%s: %s", prefix, name, fmt.Sprintf(format, args...)))
	}
	if err := checkOrigin(c.StripeBase); err != nil && c.StripeBase != "" {
		bad("STRIPE_API_BASE", "%v", err)
	}
	if c.StripeKey == "" {
		if c.StripeWebhook != "" {
			bad("STRIPE_WEBHOOK_SECRET", "it is for Stripe, and HOMEPORT_STRIPE_SECRET_KEY is not set")
		}
		return errs
	}
	if err := stripe.CheckKey(c.StripeKey); err != nil {
		bad("STRIPE_SECRET_KEY", "%v", err)
	}
	if !strings.HasPrefix(c.StripeWebhook, "whsec_") {
		bad("STRIPE_WEBHOOK_SECRET", "Stripe's events cannot be told from forged ones without the endpoint's signing secret (whsec_...)")
	}
	if u, err := url.Parse(c.PublicURL); stripe.IsLive(c.StripeKey) && (err != nil || u.Scheme != "https") {
		bad("STRIPE_SECRET_KEY", "a live key needs a public address with https")
	}
	if stripe.IsLive(c.StripeKey) && c.StripeBase != "" {
		bad("STRIPE_API_BASE", "a live key goes to Stripe's own address alone")
	}
	return errs
}

func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("%q is not an origin such as https://homeport.example", text)
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return errors.New("http is for this machine only; use https")
	}
	return nil
}

// markup is the list price over the upstream price, in thousandths.
func (c *Config) markup() (int64, error) {
	r, ok := new(big.Rat).SetString(c.Markup)
	if !ok || len(c.Markup) > 8 {
		return 0, fmt.Errorf("%q is not a number", c.Markup)
	}
	r.Mul(r, big.NewRat(1000, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, fmt.Errorf("%q has more than 3 decimals", c.Markup)
	}
	return r.Num().Int64(), nil
}

// breaker reads when a cloud goes off sale: failed calls, a slash, and in which time.
func (c *Config) breaker() (offer.BreakerLimits, error) {
	count, window, ok := strings.Cut(c.Breaker, "/")
	n, err := strconv.Atoi(count)
	d, wrong := time.ParseDuration(window)
	if !ok || err != nil || wrong != nil || n < 1 || d <= 0 {
		return offer.BreakerLimits{}, fmt.Errorf("%q is not a count and a time such as 5/5m", c.Breaker)
	}
	return offer.BreakerLimits{Failures: n, Window: d}, nil
}

// preflight reads what a machine must show: MB a second of its disk, a slash, and
// of its network.
func (c *Config) preflight() (pod.Preflight, error) {
	if c.Preflight == "off" {
		return pod.Preflight{Off: true}, nil
	}
	disk, network, ok := strings.Cut(c.Preflight, "/")
	d, err := strconv.Atoi(disk)
	n, wrong := strconv.Atoi(network)
	if !ok || err != nil || wrong != nil || min(d, n) < 0 || max(d, n) > 100_000 {
		return pod.Preflight{}, fmt.Errorf("%q is not two speeds in MB a second such as 40/2, nor off", c.Preflight)
	}
	least := func(mb int) int64 {
		if mb == 0 {
			return -1
		}
		return int64(mb) * 1_000_000
	}
	return pod.Preflight{DiskMin: least(d), NetMin: least(n)}, nil
}
