package devdoor

import (
	_ "embed"
	"html/template"
	"net/http"
	"regexp"
	"time"
)

//go:embed mailbox.html
var mailboxHTML string

//go:embed style.css
var styleCSS []byte

var mailboxTemplate = template.Must(template.New("mailbox").Funcs(template.FuncMap{
	"when":  func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
	"parts": parts,
}).Parse(mailboxHTML))

var link = regexp.MustCompile(`https?://\S+`)

// part is a piece of a mail's text: a link, or what stands between two.
type part struct {
	Text string
	Link bool
}

// parts cuts a text before and behind its links, so that a reader can follow them.
func parts(text string) []part {
	var all []part
	done := 0
	for _, at := range link.FindAllStringIndex(text, -1) {
		all = append(all, part{Text: text[done:at[0]]}, part{Text: text[at[0]:at[1]], Link: true})
		done = at[1]
	}
	return append(all, part{Text: text[done:]})
}

func style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(styleCSS) // the client went away
}

func (o *doors) mailboxList(w http.ResponseWriter, r *http.Request) {
	list, err := o.Mailbox.List(r.Context())
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.answer(w, list)
}

func (o *doors) mailboxPage(w http.ResponseWriter, r *http.Request) {
	list, err := o.Mailbox.List(r.Context())
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := mailboxTemplate.Execute(w, list); err != nil {
		o.Logger.DebugContext(r.Context(), "client went away", "err", err)
	}
}
