package devdoor

import (
	_ "embed"
	"html/template"
	"net/http"
	"time"
)

//go:embed mailbox.html
var mailboxHTML string

//go:embed style.css
var styleCSS []byte

var mailboxTemplate = template.Must(template.New("mailbox").Funcs(template.FuncMap{
	"when": func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
}).Parse(mailboxHTML))

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
