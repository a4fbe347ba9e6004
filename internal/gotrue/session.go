package gotrue

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/auth"
)

// read fills body from r's JSON object. Unknown members are ignored.
func read(r *http.Request, body any) error {
	decoder := json.NewDecoder(r.Body)
	err := decoder.Decode(body)
	if err == nil {
		_, err = decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("there is more after the object")
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errTooLarge.Because(err)
	}
	return errBody.Because(err)
}

// A sessionBody is a session as the auth client stores it.
type sessionBody struct {
	AccessToken  string   `json:"access_token"`
	TokenType    string   `json:"token_type"`
	ExpiresIn    int      `json:"expires_in"`
	ExpiresAt    int64    `json:"expires_at"`
	RefreshToken string   `json:"refresh_token"`
	User         userBody `json:"user"`
}

// A userBody is a user as the auth client stores it.
type userBody struct {
	ID               uuid.UUID      `json:"id"`
	Aud              string         `json:"aud"`
	Role             string         `json:"role"`
	Email            string         `json:"email"`
	Phone            string         `json:"phone"`
	EmailConfirmedAt time.Time      `json:"email_confirmed_at"`
	ConfirmedAt      time.Time      `json:"confirmed_at"`
	LastSignInAt     time.Time      `json:"last_sign_in_at"`
	AppMetadata      map[string]any `json:"app_metadata"`
	UserMetadata     map[string]any `json:"user_metadata"`
	Identities       []identityBody `json:"identities"`
	CreatedAt        time.Time      `json:"created_at"`
	UpdatedAt        time.Time      `json:"updated_at"`
	IsAnonymous      bool           `json:"is_anonymous"`
}

type identityBody struct {
	IdentityID   uuid.UUID      `json:"identity_id"`
	ID           string         `json:"id"`
	UserID       uuid.UUID      `json:"user_id"`
	IdentityData map[string]any `json:"identity_data"`
	Provider     string         `json:"provider"`
	LastSignInAt time.Time      `json:"last_sign_in_at"`
	CreatedAt    time.Time      `json:"created_at"`
	UpdatedAt    time.Time      `json:"updated_at"`
	Email        string         `json:"email"`
}

func userOf(u auth.User) userBody {
	return userBody{
		ID: u.ID, Aud: "authenticated", Role: "authenticated", Email: u.Email,
		EmailConfirmedAt: u.EmailConfirmedAt, ConfirmedAt: u.EmailConfirmedAt, LastSignInAt: u.LastSignInAt,
		AppMetadata:  map[string]any{"provider": "email", "providers": []string{"email"}},
		UserMetadata: map[string]any{},
		Identities: []identityBody{{
			IdentityID: u.ID, ID: u.ID.String(), UserID: u.ID, Provider: "email", Email: u.Email,
			IdentityData: map[string]any{
				"sub": u.ID.String(), "email": u.Email, "email_verified": true, "phone_verified": false,
			},
			LastSignInAt: u.LastSignInAt, CreatedAt: u.CreatedAt, UpdatedAt: u.LastSignInAt,
		}},
		CreatedAt: u.CreatedAt, UpdatedAt: u.LastSignInAt,
	}
}

func sessionOf(g auth.Grant) sessionBody {
	return sessionBody{
		AccessToken: g.AccessToken, TokenType: "bearer", ExpiresIn: g.ExpiresIn, ExpiresAt: g.ExpiresAt.Unix(),
		RefreshToken: g.RefreshToken, User: userOf(g.User),
	}
}

// token answers POST /token: only refreshing is offered.
func (h *handler) token(w http.ResponseWriter, r *http.Request) {
	var body struct {
		RefreshToken string `json:"refresh_token"`
		AuthCode     string `json:"auth_code"`
		CodeVerifier string `json:"code_verifier"`
	}
	if err := read(r, &body); err != nil {
		h.fail(w, r, err)
		return
	}
	switch grant := r.URL.Query().Get("grant_type"); {
	case grant == "pkce" && (body.AuthCode == "" || body.CodeVerifier == ""):
		h.fail(w, r, errPKCEFields)
	case grant == "pkce":
		h.fail(w, r, errFlow)
	case grant != "refresh_token":
		h.fail(w, r, errGrant)
	case body.RefreshToken == "":
		h.fail(w, r, errRefreshMissing)
	default:
		granted, err := h.Auth.Refresh(r.Context(), body.RefreshToken)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		h.write(w, r, http.StatusOK, sessionOf(granted))
	}
}

// caller proves who asks.
func (h *handler) caller(r *http.Request) (auth.Identity, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return auth.Identity{}, errNoToken
	}
	return h.Auth.Authenticate(r.Context(), token)
}

// user answers GET /user, from the database.
func (h *handler) user(w http.ResponseWriter, r *http.Request) {
	who, err := h.caller(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	user, err := h.Auth.User(r.Context(), who)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.write(w, r, http.StatusOK, userOf(user))
}

// logout answers POST /logout.
func (h *handler) logout(w http.ResponseWriter, r *http.Request) {
	who, err := h.caller(r)
	if err == nil {
		scope := auth.ScopeGlobal // the protocol's default
		if q := r.URL.Query(); q.Has("scope") {
			scope = auth.Scope(q.Get("scope"))
		}
		err = h.Auth.SignOut(r.Context(), who, scope)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// jwks answers GET /.well-known/jwks.json.
func (h *handler) jwks(w http.ResponseWriter, r *http.Request) {
	keys, err := h.Auth.PublicKeys(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=600")
	h.write(w, r, http.StatusOK, map[string]any{"keys": keys})
}

// settings answers GET /settings.
func (h *handler) settings(w http.ResponseWriter, r *http.Request) {
	h.write(w, r, http.StatusOK, map[string]any{
		"external":           map[string]bool{"email": true, "phone": false, "anonymous_users": false},
		"disable_signup":     h.Auth.SignUp == auth.SignUpInvited,
		"mailer_autoconfirm": false, "phone_autoconfirm": false, "sms_provider": "", "saml_enabled": false,
	})
}

// health answers GET /health.
func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	h.write(w, r, http.StatusOK, map[string]string{
		"name": "Homeport auth", "version": h.Version, "description": "Signs users in by e-mail link",
	})
}
