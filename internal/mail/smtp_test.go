package mail_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"homeport.dev/homeport/internal/fault"
	hpmail "homeport.dev/homeport/internal/mail"
)

// A server is a mail server in this process; its hooks answer for it.
type server struct {
	addr string
	rcpt func(to string) error
	data func() error
	open func(*server) smtp.Session

	mu   sync.Mutex
	from string
	to   []string
	got  []string
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) {
	if s.open != nil {
		return s.open(s), nil
	}
	return &session{s}, nil
}

type session struct{ s *server }

func (x *session) Reset()        {}
func (x *session) Logout() error { return nil }
func (x *session) Mail(from string, _ *smtp.MailOptions) error {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.from = from
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if x.s.rcpt != nil {
		if err := x.s.rcpt(to); err != nil {
			return err
		}
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.to = append(x.s.to, to)
	return nil
}

func (x *session) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if x.s.data != nil {
		if err := x.s.data(); err != nil {
			return err
		}
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.got = append(x.s.got, string(body))
	return nil
}

func serve(t *testing.T, s *server) *hpmail.SMTP {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	srv := smtp.NewServer(s)
	srv.Domain = "mail.test"
	srv.AllowInsecureAuth = true
	srv.ErrorLog = discard{}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(listener) }()
	t.Cleanup(func() { _ = srv.Close(); _ = listener.Close(); <-done })
	sender, err := hpmail.NewSMTP("smtp://"+s.addr, "Homeport <no-reply@homeport.test>")
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func TestSMTPDeliversALetterOnce(t *testing.T) {
	t.Parallel()
	s := &server{}
	sender := serve(t, s)
	m := letter()
	m.Subject = "Grüße"
	if err := sender.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if len(s.got) != 1 || len(s.to) != 1 || s.to[0] != m.To || s.from != "no-reply@homeport.test" {
		t.Fatalf("delivered %d letters from %q to %v", len(s.got), s.from, s.to)
	}
	got, err := mail.ReadMessage(strings.NewReader(s.got[0]))
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"From": `"Homeport" <no-reply@homeport.test>`, "To": "<ada@example.com>", "Message-Id": "<greeting-1@homeport.test>", "Auto-Submitted": "auto-generated",
	} {
		if v := got.Header.Get(header); v != want {
			t.Errorf("%s = %q, want %q", header, v, want)
		}
	}
	if !strings.HasPrefix(got.Header.Get("Content-Type"), "multipart/alternative") || got.Header.Get("Date") == "" {
		t.Errorf("headers = %v", got.Header)
	}
}

func TestSMTPFailuresAreSortedAndNameNoAddress(t *testing.T) {
	t.Parallel()
	refuse := func(code int) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "<ada@example.com> no"}
	}
	for name, c := range map[string]struct {
		server *server
		want   *fault.Error
	}{
		"unknown receiver":   {&server{rcpt: func(string) error { return refuse(550) }}, hpmail.ErrRefused},
		"greylisted":         {&server{rcpt: func(string) error { return refuse(451) }}, hpmail.ErrUnavailable},
		"content refused":    {&server{data: func() error { return refuse(554) }}, hpmail.ErrRefused},
		"mailbox full today": {&server{data: func() error { return refuse(452) }}, hpmail.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serve(t, c.server).Send(t.Context(), letter())
			if !errors.Is(err, c.want) {
				t.Fatalf("Send = %v, want %v", err, c.want)
			}
			if strings.Contains(err.Error(), "ada@") {
				t.Errorf("the error names the receiver: %v", err)
			}
		})
	}
}

func TestSMTPIsUnavailableWhenNobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	sender, err := hpmail.NewSMTP("smtp://"+addr, "no-reply@homeport.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(t.Context(), letter()); !errors.Is(err, hpmail.ErrUnavailable) {
		t.Errorf("Send = %v, want ErrUnavailable", err)
	}
}

func TestSMTPStopsWithTheContext(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	s := &server{data: func() error { close(reached); <-release; return nil }}
	sender := serve(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- sender.Send(ctx, letter()) }()
	<-reached
	cancel()
	select {
	case err := <-result:
		if err == nil {
			t.Error("Send succeeded although the server never answered")
		}
	case <-time.After(15 * time.Second):
		t.Error("Send outlived its context")
	}
	close(release)
}

func TestSMTPSendsNothingThatCheckRefuses(t *testing.T) {
	t.Parallel()
	s := &server{}
	sender := serve(t, s)
	m := letter()
	m.Subject = "Hi\r\nBcc: eve@example.com"
	if err := sender.Send(t.Context(), m); !errors.Is(err, hpmail.ErrRefused) || len(s.got) != 0 {
		t.Errorf("Send = %v, delivered %d", err, len(s.got))
	}
}

func TestNewSMTPReadsOnlyWhatItUnderstands(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"smtp://user:pass@mail.example.com":                             true,
		"smtps://user:pass@mail.example.com:465":                        true,
		"smtp://127.0.0.1:1025":                                         true,
		"smtp://user:pass@localhost:1025":                               true,
		"smtp://mail.example.com?tls=opportunistic":                     true,
		"smtp://mail.example.com?from=Homeport+%3Cme%40example.com%3E":  true,
		"smtp://user:secret@mail.example.com?tls=opportunistic":         false,
		"smtp://user:secret@mail.example.com?tls=never":                 false,
		"smtp://mail.example.com?tls=maybe":                             false,
		"smtp://mail.example.com?timeout=5":                             false,
		"smtp://mail.example.com:0":                                     false,
		"smtp://mail.example.com/inbox":                                 false,
		"http://mail.example.com":                                       false,
		"mail.example.com":                                              false,
		"smtp://user:secret@[::1":                                       false,
		"smtp://mail.example.com?from=nobody":                           false,
		"smtp://mail.example.com?from=%22a%0d%0ab%22+%3Ca%40example%3E": false,
	} {
		_, err := hpmail.NewSMTP(url, "no-reply@homeport.test")
		if (err == nil) != ok {
			t.Errorf("NewSMTP(%q) = %v, want ok %v", url, err, ok)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the password: %v", err)
		}
	}
}

func TestSMTPSendsNothingInTheClearWhenTLSIsDemanded(t *testing.T) {
	t.Parallel()
	s := &server{}
	serve(t, s)
	for _, url := range []string{"smtp://" + s.addr + "?tls=required", "smtps://" + s.addr} {
		sender, err := hpmail.NewSMTP(url, "no-reply@homeport.test")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // smtps waits for a handshake that never comes
		err = sender.Send(ctx, letter())
		cancel()
		if !errors.Is(err, hpmail.ErrUnavailable) || s.from != "" {
			t.Errorf("%s: Send = %v, sender seen %q", url, err, s.from)
		}
	}
}

// A strict server demands a sign-in.
type strict struct {
	session
	login, secret string
	signedIn      bool
}

func (x *strict) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *strict) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, login, secret string) error {
		if login != x.login || secret != x.secret {
			return smtp.ErrAuthFailed
		}
		x.signedIn = true
		return nil
	}), nil
}

func (x *strict) Mail(from string, opts *smtp.MailOptions) error {
	if !x.signedIn {
		return smtp.ErrAuthRequired
	}
	return x.session.Mail(from, opts)
}

func TestSMTPSignsIn(t *testing.T) {
	t.Parallel()
	s := &server{open: func(s *server) smtp.Session {
		return &strict{session: session{s}, login: "homeport", secret: "p@ss word"}
	}}
	serve(t, s)
	for credentials, want := range map[string]error{
		"homeport:p%40ss%20word@": nil, "homeport:wrong@": hpmail.ErrUnavailable, "": hpmail.ErrUnavailable,
	} {
		sender, err := hpmail.NewSMTP("smtp://"+credentials+s.addr, "no-reply@homeport.test")
		if err != nil {
			t.Fatal(err)
		}
		if err := sender.Send(t.Context(), letter()); !errors.Is(err, want) {
			t.Errorf("with %q: Send = %v, want %v", credentials, err, want)
		}
	}
	if len(s.got) != 1 {
		t.Errorf("%d letters", len(s.got))
	}
}
