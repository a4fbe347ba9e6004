package auth

import "homeport.dev/homeport/internal/fault"

// Faults. Their codes are those that the browser's auth client knows.
var (
	// ErrEmailMissing occurs when a link is asked for without an address.
	ErrEmailMissing = fault.New(fault.Invalid, "validation_failed", "An email address is required")
	// ErrEmailInvalid occurs when the address has not the form name@host.
	ErrEmailInvalid = fault.New(fault.Malformed, "validation_failed", "Unable to validate email address: invalid format")
	// ErrEmailLong occurs when the address has more than 255 characters.
	ErrEmailLong = fault.New(fault.Malformed, "validation_failed", "Unable to validate email address: Email must be less than 255 characters")
	// ErrTooSoon occurs when a browser asks again within the pause; the sentence names the seconds left.
	ErrTooSoon = fault.New(fault.TooMany, "over_email_send_rate_limit", "For security purposes, you can only request this after a minute.")
	// ErrTooManyLinks occurs at the limit per address and IP.
	ErrTooManyLinks = fault.New(fault.TooMany, "over_email_send_rate_limit", "Too many sign-in links were requested for this address. Please try again later.")
	// ErrTooManyRequests occurs at the limit per IP.
	ErrTooManyRequests = fault.New(fault.TooMany, "over_request_rate_limit", "Too many sign-in requests. Please try again in a few minutes.")
	// ErrLinkDead occurs when a link is unknown, expired, used or ended by a newer one.
	ErrLinkDead = fault.New(fault.Forbidden, "otp_expired", "Token has expired or is invalid")
	// ErrSignUpClosed occurs when a new address redeems a link but may not sign up (any more).
	ErrSignUpClosed = fault.New(fault.Invalid, "signup_disabled", "Signups not allowed for this instance")
	// ErrRefreshUnknown occurs when a refresh token is none of ours, or its session is gone.
	ErrRefreshUnknown = fault.New(fault.Malformed, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
	// ErrRefreshReused occurs when a refresh token is older than the one before the current: the session ends.
	ErrRefreshReused = fault.New(fault.Malformed, "refresh_token_already_used", "Invalid Refresh Token: Already Used")
	// ErrSessionExpired occurs when a session is refreshed after its lifetime, or after a week of silence.
	ErrSessionExpired = fault.New(fault.Malformed, "session_expired", "Invalid Refresh Token: Session Expired")
	// ErrBadToken occurs when an access token is not one that we signed for ourselves, or has expired.
	ErrBadToken = fault.New(fault.Unauthenticated, "bad_jwt", "Your session has expired. Please sign in again.")
	// ErrNoSession occurs when an access token is good but its session has ended.
	ErrNoSession = fault.New(fault.Unauthenticated, "session_not_found", "Your session has ended. Please sign in again.")
	// ErrScope occurs when a sign-out names none of the known scopes.
	ErrScope = fault.New(fault.Malformed, "validation_failed", "The sign-out scope must be global, local or others")
)
