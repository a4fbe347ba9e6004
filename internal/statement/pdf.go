package statement

import (
	"fmt"
	"io"
	"strings"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"homeport.dev/homeport/internal/money"
)

// The page is A4; lengths are millimetres.
const (
	margin    = 18.0
	pageWidth = 210 - 2*margin
	rowHeight = 6.6
	bottom    = 22.0
)

// An ink is a colour of the page.
type ink [3]int

var (
	dark  = ink{16, 24, 40}
	quiet = ink{94, 106, 126}
	tide  = ink{20, 110, 150}
	faint = ink{222, 228, 236}
	wash  = ink{244, 247, 250}
)

// A column of a table: its head, its width, and whether it holds numbers.
type column struct {
	head   string
	width  float64
	number bool
}

// A cell is what stands in a column; with an address it is a link.
type cell struct{ text, address string }

// A sheet is the statement on paper.
type sheet struct {
	*fpdf.Fpdf
	s        *Statement
	decimals int // of every amount, so that they stand below each other
}

// WritePDF writes the statement as a PDF of A4 pages. The same statement is the
// same file.
func (s *Statement) WritePDF(w io.Writer) error {
	p := &sheet{Fpdf: fpdf.New("P", "mm", "A4", ""), s: s, decimals: s.decimals()}
	p.AddUTF8FontFromBytes("go", "", goregular.TTF)
	p.AddUTF8FontFromBytes("go", "B", gobold.TTF)
	p.SetTitle("Homeport statement "+s.Start.Format("January 2006"), true)
	p.SetCreator("Homeport", true)
	p.SetProducer("Homeport", true)
	p.SetLang("en")
	p.SetCreationDate(s.AsOf)
	p.SetModificationDate(s.AsOf)
	p.SetCatalogSort(true)
	p.SetMargins(margin, margin, margin)
	p.SetCellMargin(0)
	p.SetAutoPageBreak(false, bottom)
	p.AliasNbPages("{pages}")
	p.SetFooterFunc(p.foot)
	p.AddPage()
	p.head()
	p.summary()
	p.money()
	p.usage("Pods", "Pod", s.Pods)
	p.usage("Volumes", "Volume", s.Volumes)
	p.members()
	if err := p.Output(w); err != nil {
		return fmt.Errorf("write a statement: %w", err)
	}
	return nil
}

func (p *sheet) ink(c ink)                    { p.SetTextColor(c[0], c[1], c[2]) }
func (p *sheet) font(style string, s float64) { p.SetFont("go", style, s) }

// text writes a line at the left or the right edge.
func (p *sheet) text(height float64, text, align string) {
	p.SetX(margin)
	p.CellFormat(pageWidth, height, p.fit(text, pageWidth), "", 0, align, false, 0, "")
}

// head is the top of the first page: whose month it is.
func (p *sheet) head() {
	s := p.s
	p.font("B", 17)
	p.ink(dark)
	p.text(9, "Homeport", "L")
	p.font("", 17)
	p.ink(quiet)
	p.text(9, "Statement", "R")
	p.Ln(15)
	p.font("B", 13)
	p.ink(dark)
	p.text(7, s.Start.Format("January 2006"), "L")
	p.Ln(7)
	p.font("", 9.5)
	p.text(5.5, printable(s.TeamName), "L")
	p.Ln(5.5)
	p.ink(quiet)
	p.text(5.5, "Team "+s.TeamID.String(), "L")
	p.Ln(5.5)
	through := s.End.AddDate(0, 0, -1).Format("2 January 2006")
	if !s.Final() {
		through = s.AsOf.Format("2 January 2006, 15:04 UTC") + ": this month is not over yet"
	}
	p.text(5.5, s.Start.Format("2 January 2006")+" to "+through, "L")
	p.Ln(11)
}

// summary leads from the opening to the closing balance.
func (p *sheet) summary() {
	s := p.s
	for _, r := range []struct {
		what   string
		amount money.USD
		strong bool
	}{
		{"Opening balance", s.Opening, false},
		{"Credits", s.Credits, false},
		{"Charges", -s.Charges, false},
		{"Refunds", s.Refunds, false},
		{"Debits", -s.Debits, false},
		{"Closing balance", s.Closing, true},
	} {
		style, fill := "", false
		if r.strong {
			style, fill = "B", true
			p.SetFillColor(wash[0], wash[1], wash[2])
		}
		p.font(style, 10)
		p.ink(dark)
		p.rule()
		p.SetX(margin)
		p.CellFormat(pageWidth/2, rowHeight+1, "  "+r.what, "", 0, "L", fill, 0, "")
		p.CellFormat(pageWidth/2, rowHeight+1, p.usd(r.amount)+"  ", "", 1, "R", fill, 0, "")
	}
	p.rule()
	p.Ln(4)
}

// rule draws a hairline at the current height.
func (p *sheet) rule() {
	p.SetDrawColor(faint[0], faint[1], faint[2])
	p.SetLineWidth(0.2)
	p.Line(margin, p.GetY(), margin+pageWidth, p.GetY())
}

func (p *sheet) money() {
	var rows [][]cell
	for _, e := range p.s.Money {
		what := cell{text: e.Description}
		reference := cell{text: short(e.Reference), address: e.Receipt}
		rows = append(rows, []cell{{text: e.At.Format("2 Jan, 15:04")}, {text: e.Type}, what, {text: e.Member}, reference, {text: p.usd(e.Amount)}})
	}
	p.table("Money in and out", []column{
		{"Date (UTC)", 24, false},
		{"Type", 15, false},
		{"Description", 49, false},
		{"Member", 36, false},
		{"Receipt", 22, false},
		{"Amount", 28, true},
	}, rows, cell{text: p.usd(p.s.Credits + p.s.Refunds - p.s.Debits)})
}

func (p *sheet) usage(title, what string, items []Item) {
	var rows [][]cell
	var sum money.USD
	for _, i := range items {
		sum += i.Net()
		rows = append(rows, []cell{
			{text: i.Name}, {text: i.ID.String()[:8]}, {text: i.Member}, {text: hours(i.Ran)}, {text: p.some(i.Refunded)}, {text: p.usd(i.Net())},
		})
	}
	p.table(title, []column{
		{what, 56, false}, {"Id", 19, false}, {"Made by", 37, false}, {"Hours", 16, true}, {"Refunded", 22, true}, {"Cost", 24, true},
	}, rows, cell{text: p.usd(sum)})
}

func (p *sheet) members() {
	var rows [][]cell
	var sum money.USD
	for _, m := range p.s.Members {
		sum += m.Pods + m.Storage
		rows = append(rows, []cell{{text: orNobody(m.Member)}, {text: p.usd(m.Pods)}, {text: p.usd(m.Storage)}, {text: p.usd(m.Pods + m.Storage)}})
	}
	p.table("Members", []column{
		{"Member", 84, false}, {"Pods", 30, true}, {"Storage", 30, true}, {"Cost", 30, true},
	}, rows, cell{text: p.usd(sum)})
}

// table writes a section, its head again on each page, and the sum of its last
// column. Without rows it says so.
func (p *sheet) table(title string, columns []column, rows [][]cell, sum cell) {
	p.room(4*rowHeight + 8)
	p.Ln(6)
	p.font("B", 11)
	p.ink(dark)
	p.text(rowHeight, title, "L")
	p.Ln(rowHeight + 1)
	if len(rows) == 0 {
		p.font("", 9)
		p.ink(quiet)
		p.text(rowHeight, "Nothing in this month.", "L")
		p.Ln(rowHeight)
		return
	}
	p.heads(columns)
	for _, row := range rows {
		if p.room(2 * rowHeight) {
			p.heads(columns)
		}
		p.font("", 8.5)
		p.ink(dark)
		p.row(columns, row)
	}
	p.font("B", 8.5)
	last := columns[len(columns)-1].width
	p.row([]column{{"", pageWidth - last, false}, {"", last, true}}, []cell{{text: "Total"}, sum})
	p.rule()
}

func (p *sheet) heads(columns []column) {
	p.font("", 8)
	p.ink(quiet)
	row := make([]cell, 0, len(columns))
	for _, c := range columns {
		row = append(row, cell{text: c.head})
	}
	p.row(columns, row)
}

func (p *sheet) row(columns []column, cells []cell) {
	p.rule()
	p.SetX(margin)
	for i, c := range columns {
		align := "L"
		if c.number {
			align = "R"
		}
		if cells[i].address != "" {
			p.ink(tide)
		}
		p.CellFormat(c.width, rowHeight, p.fit(printable(cells[i].text), c.width-2), "", 0, align, false, 0, cells[i].address)
		if cells[i].address != "" {
			p.ink(dark)
		}
	}
	p.Ln(rowHeight)
}

// room begins another page when the height is not left, and says so.
func (p *sheet) room(height float64) bool {
	if p.GetY()+height <= 297-bottom {
		return false
	}
	p.AddPage()
	return true
}

// foot is the bottom of every page.
func (p *sheet) foot() {
	p.SetY(-15)
	p.font("", 8)
	p.ink(quiet)
	p.text(5, "Amounts in USD, times in UTC. Made "+p.s.AsOf.Format("2 January 2006, 15:04")+".", "L")
	// The number of pages is narrower than the word that stands for it.
	extra := p.GetStringWidth("{pages}") - p.GetStringWidth("9")
	p.SetX(margin)
	p.CellFormat(pageWidth+extra, 5, fmt.Sprintf("Page %d of {pages}", p.PageNo()), "", 0, "R", false, 0, "")
}

// fit cuts a text that is wider than its place.
func (p *sheet) fit(text string, width float64) string {
	if p.GetStringWidth(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && p.GetStringWidth(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// printable leaves out what the file format cannot hold: line breaks, control
// characters and those beyond 16 bits.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f:
			return ' '
		case r > 0xffff:
			return '?'
		}
		return r
	}, text)
}

// short is a reference as the page shows it.
func short(reference string) string {
	if reference == "" {
		return "-"
	}
	return "ref-" + reference[:min(8, len(reference))]
}

func orNobody(member string) string {
	if member == "" {
		return "Unknown"
	}
	return member
}

// decimals is how many decimals the amounts need, at least two.
func (s *Statement) decimals() int {
	most := 2
	for _, l := range s.lines() {
		_, rest, _ := strings.Cut(Exact(l.amount), ".")
		most = max(most, len(rest))
	}
	return most
}

// usd writes an amount for people, exactly: "$1,234.50".
func (p *sheet) usd(u money.USD) string {
	sign, text := "", Exact(u)
	if rest, below := strings.CutPrefix(text, "-"); below {
		sign, text = "-", rest
	}
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + "$" + whole + "." + rest + strings.Repeat("0", max(0, p.decimals-len(rest)))
}

// some is an amount, or nothing where there is none.
func (p *sheet) some(u money.USD) string {
	if u == 0 {
		return ""
	}
	return p.usd(u)
}
