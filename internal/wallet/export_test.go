package wallet

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// CreditByBookTx posts a new credit as it is posted to a wallet that is not at
// rest: by the book, under the lock.
func (s *Service) CreditByBookTx(ctx context.Context, tx pgx.Tx, c Credit) error {
	from, _ := c.Source.clearing()
	b, err := s.lock(ctx, tx, c.TeamID)
	if err != nil {
		return err
	}
	if err := b.credit(c, from); err != nil {
		return err
	}
	return s.save(ctx, tx, b)
}

const (
	benchTeam    = `('00000000-0000-4000-a000-000000' || :n)::uuid` // of six digits
	benchAccount = `('00000000-0000-4000-b000-000000' || :n)::uuid`
	benchKey     = `('bench:' || :client_id || ':' || :k)`
	benchBegin   = "\\set n random(:first, :last)\n\\set k random(1, 9000000000000000000)\nbegin;\n"
)

func oneLine(sql string) string { return strings.Join(strings.Fields(sql), " ") + ";\n" }

// atRest are the values of a credit to a wallet at rest.
var atRest = strings.NewReplacer(
	"@debit", "'"+testClearing.String()+"'", "@account", ":account_id", "@amount", "10000", "@key", benchKey, "@team", benchTeam,
	"@reference", "'pi_test_'", "@description", "''", "@at", "'2027-03-14 12:00:00+00'",
)

// addStatement is the first statement of a credit to a wallet at rest, with the
// directive that tells whether it is.
func addStatement(then string) string {
	return strings.Replace(oneLine(atRest.Replace(sqlAddAtRest)), ";\n", " "+then+"\n", 1)
}

// CreditScript is the statements of a credit to a wallet at rest as a pgbench
// script: the same text, in the same round trips, over teams numbered from
// :first to :last.
func CreditScript() string {
	return benchBegin + addStatement("\\gset") + oneLine(atRest.Replace(sqlPostAtRest)) + "end;\n"
}

// RunningCreditScript is that of a credit to a wallet that pays for something
// that runs: what it waits for next moves with the money.
func RunningCreditScript() string {
	onTeam := func(sql string) string { return oneLine(strings.ReplaceAll(sql, "$1", benchTeam)) }
	post := strings.NewReplacer(
		"@debit", "'"+testClearing.String()+"'", "@credit", benchAccount, "@amount", "10000", "@code", "'credit'", "@key", benchKey,
		"@team", benchTeam, "@kind", "null", "@resource", "null", "@segment", "null", "@from", "null", "@to", "null", "@day", "null",
		"@reference", "'pi_test_'", "@description", "''", "@at", "'2027-03-14 12:00:00+00'",
		"@balance", "balance_usd_micro + 10000", "@receivable", "0", "@settled", "settled_us", "@due", "due_us",
		"@burn", "burn_usd_micro_per_hour", "@pod_burn", "pod_burn_usd_micro_per_hour", "@exhausts", "exhausts_us + 1000",
		"@exhausted", "exhausted_us", "@switch_off", "switch_off_us", "@month", "month_us", "@spent", "month_spent_usd_micro",
		"@warned", "warned", "@warn", "warn_us + 1000", "@empty", "empty_us", "@arrears_end", "arrears_end_us", "@arrears", "arrears_us", "@step", "arrears_step",
		"@spend_look", "spend_us", "@spend_month", "spend_month_us", "@stage", "spend_stage", "@limit", "limit_us",
		"@low_below", "low_usd_micro", "@low_told", "low_told", "@low", "low_us", "@next", "next_us + 1000",
	).Replace(sqlPostCredit)
	return benchBegin + addStatement(";") +
		strings.Replace(onTeam(sqlLockBook), ";\n", " \\gset\n", 1) +
		"\\if :version <> :read_version\n" + onTeam(sqlListUnsettled) + "\\endif\n" +
		oneLine(post) + "end;\n"
}
