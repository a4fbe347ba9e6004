package mail

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

//go:embed layout.html
var layoutHTML string

var layoutTemplate = template.Must(template.New("layout").Parse(layoutHTML))

// An Action is the one thing a letter asks for.
type Action struct {
	Label string
	URL   string // absolute, http or https
}

// A Layout is the content of a letter in the product's look. Its parts may
// hold text that users wrote: line breaks in them become spaces and the HTML
// part escapes them.
type Layout struct {
	Title      string
	Paragraphs []string
	Action     *Action // nil = none
	Footnotes  []string
}

// Render makes the two parts of a letter. The text part has exactly one URL
// when there is an Action, and none otherwise, unless a text holds one.
func (l Layout) Render() (text, html string, err error) {
	flat := Layout{Title: flatten(l.Title), Paragraphs: flattenAll(l.Paragraphs), Footnotes: flattenAll(l.Footnotes)}
	if l.Action != nil {
		if !strings.HasPrefix(l.Action.URL, "https://") && !strings.HasPrefix(l.Action.URL, "http://") {
			return "", "", fmt.Errorf("mail: the action of %q has no http address", flat.Title)
		}
		flat.Action = &Action{Label: flatten(l.Action.Label), URL: flatten(l.Action.URL)}
	}
	var b bytes.Buffer
	if err := layoutTemplate.Execute(&b, flat); err != nil {
		return "", "", fmt.Errorf("render the letter %q: %w", flat.Title, err)
	}
	return flat.text(), b.String(), nil
}

// Message renders the layout into a letter.
func (l Layout) Message(to, subject, key string) (Message, error) {
	text, html, err := l.Render()
	if err != nil {
		return Message{}, err
	}
	return Message{To: to, Subject: flatten(subject), Text: text, HTML: html, Key: key}, nil
}

func (l Layout) text() string {
	parts := append([]string{l.Title}, l.Paragraphs...)
	if l.Action != nil {
		parts = append(parts, l.Action.Label+":\n"+l.Action.URL)
	}
	if len(l.Footnotes) > 0 {
		parts = append(parts, strings.Join(l.Footnotes, "\n\n"))
	}
	return strings.Join(append(parts, "-- \nHomeport"), "\n\n") + "\n"
}

func flattenAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = flatten(s)
	}
	return out
}

// flatten makes one line of s.
func flatten(s string) string { return strings.Join(strings.Fields(s), " ") }
