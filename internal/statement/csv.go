package statement

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"homeport.dev/homeport/internal/money"
)

// columns are those of every row. A section's amounts add up by themselves:
// the sections tell the same money in different ways.
var columns = []string{
	"Section", "Date (UTC)", "Type", "Item", "Item Id", "Member", "Hours", "Amount (USD)", "Reference", "Receipt",
}

// A line is one row of the file, in the order of columns.
type line struct {
	section, date, kind, item, id, member, hours string
	amount                                       money.USD
	reference, receipt                           string
}

// WriteCSV writes the statement by RFC 4180, with exact amounts.
func (s *Statement) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(columns); err != nil {
		return fmt.Errorf("write a statement: %w", err)
	}
	for _, l := range s.lines() {
		err := out.Write([]string{
			l.section, l.date, l.kind, plain(l.item), l.id, plain(l.member), l.hours, Exact(l.amount), plain(l.reference), l.receipt,
		})
		if err != nil {
			return fmt.Errorf("write a statement: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

func (s *Statement) lines() []line {
	end := s.End
	if !s.Final() {
		end = s.AsOf
	}
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	all := []line{
		{section: "Summary", date: day(s.Start), kind: "opening balance", item: s.TeamName, id: s.TeamID.String(), amount: s.Opening},
		{section: "Summary", kind: "credits", amount: s.Credits},
		{section: "Summary", kind: "charges", amount: -s.Charges},
		{section: "Summary", kind: "refunds", amount: s.Refunds},
		{section: "Summary", kind: "debits", amount: -s.Debits},
		{section: "Balance", date: day(end), kind: "closing balance", amount: s.Closing},
	}
	for _, e := range s.Money {
		all = append(all, line{
			section: "Money", date: e.At.Format("2006-01-02 15:04:05"), kind: e.Type, item: e.Description, member: e.Member,
			amount: e.Amount, reference: e.Reference, receipt: e.Receipt,
		})
	}
	usage := func(section string, items []Item) {
		for _, i := range items {
			all = append(all, line{
				section: section, kind: "usage", item: i.Name, id: i.ID.String(), member: i.Member, hours: hours(i.Ran), amount: -i.Net(),
			})
		}
	}
	usage("Pods", s.Pods)
	usage("Volumes", s.Volumes)
	for _, m := range s.Members {
		all = append(all, line{section: "Members", kind: "pods", member: m.Member, amount: -m.Pods},
			line{section: "Members", kind: "storage", member: m.Member, amount: -m.Storage})
	}
	return all
}

// plain is a text that no spreadsheet takes for a formula: names come from
// people.
func plain(text string) string {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if trimmed != "" && strings.ContainsAny(trimmed[:1], "=+-@") {
		return "'" + text
	}
	return text
}

// Exact writes an amount with all its decimals, at least two.
func Exact(u money.USD) string {
	text := u.Decimal()
	whole, rest, _ := strings.Cut(text, ".")
	for len(rest) < 2 {
		rest += "0"
	}
	return whole + "." + rest
}

// hours writes a stretch of time as hours with two decimals.
func hours(d time.Duration) string { return fmt.Sprintf("%.2f", d.Hours()) }
