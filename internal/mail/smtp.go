package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// smtpTimeout bounds each phase of a delivery: dial with sign-in, and send.
const smtpTimeout = 20 * time.Second

// SMTP is a Sender that hands letters to a mail server. Each letter uses its
// own connection: letters are few, and a stale connection would cost more.
type SMTP struct {
	host    string
	from    *mail.Address
	tls     bool // from the first byte
	options []gomail.Option
}

// NewSMTP reads the address of a mail server:
//
//	smtp://user:pass@host:587     STARTTLS; demanded unless the host is loopback
//	smtps://user:pass@host:465    TLS from the first byte
//	smtp://host:25?tls=opportunistic
//
// tls is required, opportunistic or never (smtp only; credentials are never
// sent in the clear off loopback). from is the sender, "Name <name@host>" or a
// bare address; a query parameter from= takes its place.
func NewSMTP(rawURL, from string) (*SMTP, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("the SMTP address is not a URL") // err would repeat the password
	}
	if (u.Scheme != "smtp" && u.Scheme != "smtps") || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("the SMTP address must read smtp://[user:pass@]host[:port] or smtps://…")
	}
	query := u.Query()
	if v := query.Get("from"); v != "" {
		from = v
	}
	sender, err := mail.ParseAddress(from)
	if err != nil || !plainAddress(sender.Address) || !oneLine(sender.Name) {
		return nil, errors.New("the sender of mails must read Name <name@host>")
	}
	s := &SMTP{host: u.Hostname(), from: sender, options: []gomail.Option{gomail.WithTimeout(smtpTimeout), gomail.WithoutNoop()}}
	if err := s.secure(u, query); err != nil {
		return nil, err
	}
	return s, nil
}

// secure sets port, TLS and credentials from the server's address.
func (s *SMTP) secure(u *url.URL, query url.Values) error {
	for key := range query {
		if key != "from" && key != "tls" {
			return fmt.Errorf("the SMTP address has the unknown parameter %q", key)
		}
	}
	policy, port := gomail.TLSMandatory, 587
	if loopback(s.host) {
		policy = gomail.TLSOpportunistic
	}
	switch query.Get("tls") {
	case "":
	case "required":
		policy = gomail.TLSMandatory
	case "opportunistic":
		policy = gomail.TLSOpportunistic
	case "never":
		policy = gomail.NoTLS
	default:
		return errors.New("tls of the SMTP address must be required, opportunistic or never")
	}
	if u.Scheme == "smtps" {
		port, policy = 465, gomail.NoTLS // no STARTTLS inside TLS
		s.tls = true
	}
	if u.Port() != "" {
		n, err := strconv.Atoi(u.Port())
		if err != nil || n < 1 || n > 65535 {
			return errors.New("the port of the SMTP address is no port")
		}
		port = n
	}
	s.options = append(s.options, gomail.WithPort(port), gomail.WithTLSPolicy(policy))
	if u.User == nil {
		return nil
	}
	if policy != gomail.TLSMandatory && !s.tls && !loopback(s.host) {
		return errors.New("the SMTP address has credentials, which are not sent without TLS")
	}
	password, _ := u.User.Password()
	s.options = append(s.options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
		gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	if policy != gomail.TLSMandatory && !s.tls { // loopback: discovery would leave out what needs no TLS there
		s.options = append(s.options, gomail.WithOpportunisticSMTPAuth(
			gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthCramMD5, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Send hands m to the server. The faults are ErrRefused and ErrUnavailable.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	msg, err := s.letter(m)
	if err != nil {
		return err
	}
	line, hangUp := s.dialer(ctx)
	defer hangUp()
	client, err := gomail.NewClient(s.host, append(slices.Clone(s.options), gomail.WithDialContextFunc(line))...)
	if err != nil {
		return fmt.Errorf("set up the SMTP client: %w", err)
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return ErrUnavailable.Because(fmt.Errorf("reach the mail server: %w", err))
	}
	err = client.SendWithSMTPClient(conn, msg)
	if err != nil && !msg.IsDelivered() {
		return classify(err)
	}
	_ = client.CloseWithSMTPClient(conn) // the letter is in their hands: a failed goodbye is none of ours
	return nil
}

// dialer returns the function that opens the connection of one delivery, and
// the one that closes it. It also closes when ctx ends: the SMTP client itself
// would wait for the answer it is reading.
func (s *SMTP) dialer(ctx context.Context) (dial gomail.DialContextFunc, hangUp func()) {
	var stop func() bool
	var conn net.Conn
	dial = func(dialCtx context.Context, network, addr string) (net.Conn, error) {
		var err error
		if s.tls {
			conn, err = (&tls.Dialer{Config: &tls.Config{ServerName: s.host}}).DialContext(dialCtx, network, addr)
		} else {
			conn, err = (&net.Dialer{}).DialContext(dialCtx, network, addr)
		}
		if err != nil {
			return nil, err
		}
		opened := conn
		stop = context.AfterFunc(ctx, func() { _ = opened.Close() })
		return conn, nil
	}
	return dial, func() {
		if stop != nil {
			stop()
			_ = conn.Close()
		}
	}
}

// letter writes m down as a MIME message.
func (s *SMTP) letter(m Message) (*gomail.Msg, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	msg := gomail.NewMsg()
	msg.FromMailAddress(s.from)
	if err := msg.To(m.To); err != nil {
		return nil, ErrRefused.Because(errors.New("the receiver is not one plain address"))
	}
	msg.Subject(m.Subject)
	if m.Key != "" {
		_, host, _ := strings.Cut(s.from.Address, "@")
		msg.SetMessageIDWithValue(m.Key + "@" + host)
	}
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	return msg, nil
}

// classify keeps of a delivery error its code and phase only: the server's
// text may repeat the address.
func classify(err error) error {
	var se *gomail.SendError
	if !errors.As(err, &se) {
		return ErrUnavailable.Because(errors.New("the delivery failed without an answer"))
	}
	cause := fmt.Errorf("the mail server answered %d %s when %s", se.ErrorCode(), se.EnhancedStatusCode(), se.Reason)
	if se.ErrorCode() >= 500 && se.Reason != gomail.ErrSMTPMailFrom {
		return ErrRefused.Because(cause)
	}
	return ErrUnavailable.Because(cause)
}
