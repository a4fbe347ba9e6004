package mail_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/mail"
)

func letter() mail.Message {
	return mail.Message{To: "ada@example.com", Subject: "Hello", Text: "Hello Ada.\n", HTML: "<p>Hello Ada.</p>", Key: "greeting-1"}
}

func TestCheckRefusesWhatCouldEndAHeader(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*mail.Message){
		"receiver with a line break":  func(m *mail.Message) { m.To = "ada@example.com\r\nBcc: eve@example.com" },
		"receiver with a bare return": func(m *mail.Message) { m.To = "ada@example.com\rBcc: eve" },
		"two receivers":               func(m *mail.Message) { m.To = "ada@example.com,eve@example.com" },
		"receiver with a name":        func(m *mail.Message) { m.To = "Ada <ada@example.com>" },
		"receiver with a group":       func(m *mail.Message) { m.To = "all:ada@example.com;" },
		"receiver with two ats":       func(m *mail.Message) { m.To = "ada@example.com@evil.example" },
		"receiver with a space":       func(m *mail.Message) { m.To = "ada @example.com" },
		"receiver that is empty":      func(m *mail.Message) { m.To = "" },
		"receiver too long":           func(m *mail.Message) { m.To = strings.Repeat("a", 251) + "@x.io" },
		"subject with a line break":   func(m *mail.Message) { m.Subject = "Hi\nBcc: eve@example.com" },
		"subject with NEL":            func(m *mail.Message) { m.Subject = "Hi\u0085Bcc: eve@example.com" },
		"subject with NUL":            func(m *mail.Message) { m.Subject = "Hi\x00" },
		"subject that is empty":       func(m *mail.Message) { m.Subject = "" },
		"key with a bracket":          func(m *mail.Message) { m.Key = "a>\r\nX: y" },
		"no text":                     func(m *mail.Message) { m.Text = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := letter()
			spoil(&m)
			if err := m.Check(); !errors.Is(err, mail.ErrRefused) {
				t.Errorf("Check = %v, want ErrRefused", err)
			}
		})
	}
	if err := letter().Check(); err != nil {
		t.Errorf("Check of a good letter = %v", err)
	}
}

func TestLayoutHasOneURLAndEscapesWhatUsersWrote(t *testing.T) {
	t.Parallel()
	layout := mail.Layout{
		Title:      "Join <b>Ada</b>'s team",
		Paragraphs: []string{"One\r\ntwo <script>alert(1)</script>"},
		Action:     &mail.Action{Label: "Join", URL: "https://homeport.test/auth?a=1&b=2"},
		Footnotes:  []string{"If this was not you, ignore it."},
	}
	text, html, err := layout.Render()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`https?://`).FindAllString(text, -1)); n != 1 {
		t.Errorf("the text part has %d URLs, want 1:\n%s", n, text)
	}
	if !strings.Contains(text, "\nhttps://homeport.test/auth?a=1&b=2\n") {
		t.Errorf("the URL does not stand on a line of its own:\n%s", text)
	}
	if !strings.Contains(text, "One two <script>") {
		t.Errorf("a line break of a user survived:\n%s", text)
	}
	if strings.Contains(html, "<script>") || strings.Contains(html, "<b>") {
		t.Errorf("the HTML part does not escape:\n%s", html)
	}
	if !strings.Contains(html, `href="https://homeport.test/auth?a=1&amp;b=2"`) {
		t.Errorf("the HTML part lacks the link:\n%s", html)
	}
}

func TestLayoutRefusesAnActionThatIsNoWebAddress(t *testing.T) {
	t.Parallel()
	layout := mail.Layout{Title: "T", Action: &mail.Action{Label: "Go", URL: "javascript:alert(1)"}}
	if _, _, err := layout.Render(); err == nil {
		t.Error("a javascript: action was accepted")
	}
}
