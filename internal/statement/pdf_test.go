package statement

import (
	"bytes"
	"encoding/csv"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// sample is a month with many rows and awkward names.
func sample() *Statement {
	s := &Statement{TeamID: id.New(), TeamName: "Łódź Rowing 🚣 & Söhne — Αθήνα", AsOf: time.Date(2027, 4, 2, 9, 30, 0, 0, time.UTC)}
	s.Start = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	s.End = s.Start.AddDate(0, 1, 0)
	s.Opening = 12_345_678
	who := []string{"ada@example.com", "a-very-long-address-of-a-member@subdomain.example.org", ""}
	entry := func(kind, what, member, receipt string, amount money.USD) {
		s.Money = append(s.Money, Entry{
			At: s.Start.Add(time.Duration(len(s.Money)) * 26 * time.Hour), Type: kind, Description: what, Member: member,
			Amount: amount, Reference: "pi_test_1234567890", Receipt: receipt,
		})
		switch kind {
		case "credit":
			s.Credits += amount
		case "refund":
			s.Refunds += amount
		case "debit":
			s.Debits -= amount
		}
	}
	entry("credit", "Wallet credit", who[0], "https://homeport.example/test-checkout/cs_1", 1_000*money.Dollar)
	entry("refund", "Refund: Pod runtime: Pod ab12cd34 · 2x H100 80GB, 3 min after its end", who[1], "", 123_456)
	entry("debit", "=cmd|' /C calc'!A0", "", "", -5*money.Dollar)
	members := map[string]*Share{}
	use := func(list *[]Item, name string, n int, charged money.USD) {
		i := Item{ID: id.New(), Name: name, Member: who[n%3], Ran: time.Duration(n) * 97 * time.Minute, Charged: charged}
		*list = append(*list, i)
		s.Charges += charged
		if members[i.Member] == nil {
			members[i.Member] = &Share{Member: i.Member}
		}
		if list == &s.Pods {
			members[i.Member].Pods += charged
		} else {
			members[i.Member].Storage += charged
		}
	}
	for n := range 45 {
		use(&s.Pods, "Pod ab12cd"+strconv.Itoa(10+n)+" · 8x H100 80GB", n, money.USD(1_234_567*n+1))
	}
	for n := range 12 {
		use(&s.Volumes, "Volume a name of some length "+strconv.Itoa(n), n, money.USD(72_000*n))
	}
	for _, w := range who {
		s.Members = append(s.Members, *members[w])
	}
	s.Closing = s.Opening + s.Net()
	return s
}

func TestAPDFIsWrittenTheSameTwice(t *testing.T) {
	t.Parallel()
	s := sample()
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := s.WritePDF(w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.HasPrefix(first.Bytes(), []byte("%PDF-")) || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("a file of %d bytes, then one of %d", first.Len(), second.Len())
	}
	if !bytes.Contains(first.Bytes(), []byte("/Count 3")) || !bytes.Contains(first.Bytes(), []byte("https://homeport.example/test-checkout/cs_1")) {
		t.Error("three pages, and a link to the receipt, are wanted")
	}
	if to := os.Getenv("STATEMENT_PDF"); to != "" {
		if err := os.WriteFile(to, first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty := &Statement{AsOf: s.AsOf, Month: wallet.Month{Start: s.Start, End: s.End}}
	if err := empty.WritePDF(&second); err != nil {
		t.Errorf("a month without anything: %v", err)
	}
}

// sums adds up the amounts of a file by section, as unbounded fractions.
func sums(t *testing.T, file string) map[string]*big.Rat {
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*big.Rat{}
	for _, row := range rows[1:] {
		amount, ok := new(big.Rat).SetString(row[7])
		if !ok {
			t.Fatalf("amount %q", row[7])
		}
		if by[row[0]] == nil {
			by[row[0]] = new(big.Rat)
		}
		by[row[0]].Add(by[row[0]], amount)
	}
	return by
}

func TestTheSectionsOfACSVAddUp(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := sample().WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	by := sums(t, out.String())
	if by["Summary"].Cmp(by["Balance"]) != 0 {
		t.Errorf("the summary makes %s, the closing balance is %s", by["Summary"].FloatString(6), by["Balance"].FloatString(6))
	}
	usage := new(big.Rat).Add(by["Pods"], by["Volumes"])
	if usage.Cmp(by["Members"]) != 0 {
		t.Errorf("pods and volumes cost %s, members %s", usage.FloatString(6), by["Members"].FloatString(6))
	}
	if !strings.Contains(out.String(), "'=cmd|") || strings.Contains(out.String(), ",=cmd") {
		t.Error("a formula got into the file")
	}
	if lines := strings.Count(out.String(), "\r\n"); lines != 1+6+3+45+12+6 {
		t.Errorf("%d lines", lines)
	}
}

func TestAmountsAreWrittenExactly(t *testing.T) {
	t.Parallel()
	for amount, want := range map[money.USD]string{
		0: "$0.00", 1: "$0.000001", -1_500_000: "-$1.50", 1_234_567_890_120: "$1,234,567.89012", 999_000_000: "$999.00", 1_000_000_000: "$1,000.00",
	} {
		if got := (&sheet{decimals: 2}).usd(amount); got != want {
			t.Errorf("%d is written as %s, want %s", amount, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64().Draw(t, "amount")
		got, _ := new(big.Rat).SetString(Exact(money.USD(amount)))
		if got == nil || got.Cmp(big.NewRat(amount, 1_000_000)) != 0 {
			t.Errorf("%d is written as %s", amount, Exact(money.USD(amount)))
		}
	})
}
