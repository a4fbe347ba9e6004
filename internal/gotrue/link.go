package gotrue

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"homeport.dev/homeport/internal/auth"
)

// Cookies. Both hold the secret by which a browser is recognised: one is shown
// when a link is opened, the other when one is asked for.
const (
	cookieVerify = "hp_ml"
	cookieOTP    = "hp_br"
	cookieLife   = 10 * time.Minute
)

// linkTypes are the names under which a sign-in link may be redeemed.
var linkTypes = map[string]bool{"magiclink": true, "signup": true, "invite": true, "email": true}

// otp answers POST /otp: the same for known and unknown addresses.
func (h *handler) otp(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Email           *string `json:"email"`
		Phone           string  `json:"phone"`
		CreateUser      *bool   `json:"create_user"`
		Challenge       *string `json:"code_challenge"`
		ChallengeMethod *string `json:"code_challenge_method"`
	}
	err := read(r, &body)
	switch {
	case err != nil:
	case body.Phone != "":
		err = errPhone
	case !validChallenge(text(body.Challenge), text(body.ChallengeMethod)):
		err = errChallenge
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	browser, _ := r.Cookie(cookieOTP)
	asked, err := h.Auth.RequestLink(r.Context(), auth.Request{
		Email: text(body.Email), RedirectTo: r.URL.Query().Get("redirect_to"), Browser: value(browser),
		IP: h.ClientIP(r), UserAgent: r.UserAgent(), NoSignUp: body.CreateUser != nil && !*body.CreateUser,
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.setCookie(w, cookieVerify, prefix+"/verify", asked.Browser)
	h.setCookie(w, cookieOTP, prefix+"/otp", asked.Browser)
	h.write(w, r, http.StatusOK, struct{}{})
}

func (h *handler) setCookie(w http.ResponseWriter, name, path, value string) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // secure wherever browsers come by https
		Name: name, Value: value, Path: path, MaxAge: int(cookieLife / time.Second),
		HttpOnly: true, Secure: h.secure, SameSite: http.SameSiteLaxMode,
	})
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func value(c *http.Cookie) string {
	if c == nil {
		return ""
	}
	return c.Value
}

// validChallenge says that a PKCE challenge is absent or whole. Links carry no
// code, so a good one is not needed later.
func validChallenge(challenge, method string) bool {
	if challenge == "" && method == "" {
		return true
	}
	method = strings.ToLower(method)
	if (method != "s256" && method != "plain") || len(challenge) < 43 || len(challenge) > 128 {
		return false
	}
	return !strings.ContainsFunc(challenge, func(c rune) bool {
		return !strings.ContainsRune("-._~", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// openLink answers GET /verify, the address in the mail: in the browser that
// asked, it goes on at once; elsewhere it shows a page that asks for one click.
func (h *handler) openLink(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !linkTypes[q.Get("type")] {
		h.deadLink(w, r)
		return
	}
	link, err := h.Auth.PeekLink(r.Context(), q.Get("token"))
	if errors.Is(err, auth.ErrLinkDead) {
		h.deadLink(w, r)
		return
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	browser, _ := r.Cookie(cookieVerify)
	if link.AskedFrom(value(browser)) {
		h.goTo(w, link.Destination(q.Get("token")))
		return
	}
	h.confirmPage(w, r, link)
}

// verify answers POST /verify: the page's form is sent on, JSON redeems.
func (h *handler) verify(w http.ResponseWriter, r *http.Request) {
	if contentType(r) == typeForm {
		h.confirm(w, r)
		return
	}
	var body struct {
		Type      string `json:"type"`
		TokenHash string `json:"token_hash"`
		Email     string `json:"email"`
		Phone     string `json:"phone"`
	}
	err := read(r, &body)
	switch {
	case err != nil:
	case !linkTypes[body.Type]:
		err = errVerifyType
	case body.TokenHash == "":
		err = errVerifyToken
	case body.Email != "" || body.Phone != "":
		err = errVerifyOnly
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	granted, err := h.Auth.Verify(r.Context(), body.TokenHash, h.client(r))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.write(w, r, http.StatusOK, sessionOf(granted))
}

// confirm answers the page's form as opening the link in the right browser
// would have been answered.
func (h *handler) confirm(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			h.fail(w, r, errTooLarge.Because(err))
			return
		}
		h.fail(w, r, errBody.Because(err))
		return
	}
	token := r.PostForm.Get("token")
	link, err := h.Auth.PeekLink(r.Context(), token)
	if errors.Is(err, auth.ErrLinkDead) || !linkTypes[r.PostForm.Get("type")] {
		h.deadLink(w, r)
		return
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.goTo(w, link.Destination(token))
}

func (h *handler) goTo(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// deadLink sends the browser on with the reason in the fragment.
func (h *handler) deadLink(w http.ResponseWriter, r *http.Request) {
	h.goTo(w, h.Auth.Redirect(r.FormValue("redirect_to"))+"#"+
		"error=access_denied&error_code=otp_expired&error_description="+
		url.QueryEscape("Email link is invalid or has expired")+"&sb=")
}

//go:embed confirm.css
var confirmCSS string

//go:embed confirm.html
var confirmHTML string

var confirmTemplate = template.Must(template.New("confirm").Parse(confirmHTML))

var confirmStyle = func() string {
	sum := sha256.Sum256([]byte(confirmCSS))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// confirmPage shows what the link would do, with one button.
func (h *handler) confirmPage(w http.ResponseWriter, r *http.Request, link auth.Link) {
	q := r.URL.Query()
	var page bytes.Buffer
	err := confirmTemplate.Execute(&page, map[string]any{
		"Style":  template.CSS(confirmCSS), //nolint:gosec // our own file
		"Action": prefix + "/verify",
		"Token":  q.Get("token"), "Type": q.Get("type"),
		"Email": mask(link.Email), "Agent": auth.DescribeAgent(link.UserAgent), "IP": link.IP,
		"Invited": link.InvitationID != nil,
		"Ago":     ago(h.Clock.Wall().Sub(link.RequestedAt)),
	})
	if err != nil {
		h.fail(w, r, fmt.Errorf("render the confirmation page: %w", err))
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Referrer-Policy", "strict-origin") // the address holds the token; a form post must still name its origin
	header.Set("X-Frame-Options", "DENY")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src "+confirmStyle+
		"; form-action 'self' "+originOf(link.RedirectTo)+"; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		h.Logger.DebugContext(r.Context(), "confirmation page not delivered", "error", err)
	}
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// mask shows of an address its first letter and its host.
func mask(email string) string {
	name, host, _ := strings.Cut(email, "@")
	if name == "" {
		return "***@" + host
	}
	return name[:1] + "***@" + host
}

func ago(d time.Duration) string {
	switch minutes := int(d / time.Minute); {
	case minutes < 1:
		return "less than a minute ago"
	case minutes == 1:
		return "1 minute ago"
	default:
		return fmt.Sprintf("%d minutes ago", minutes)
	}
}
