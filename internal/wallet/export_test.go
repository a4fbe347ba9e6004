package wallet

import "strings"

// CreditScript is the statements of a credit as a pgbench script: the same
// text, in the same round trips, over teams numbered from 1 to :teams.
func CreditScript() string {
	const team, account = `('00000000-0000-4000-a000-' || lpad(:n, 12, '0'))::uuid`, `('00000000-0000-4000-b000-' || lpad(:n, 12, '0'))::uuid`
	const key = `('bench:' || :client_id || ':' || :k)`
	one := func(sql string) string { return strings.Join(strings.Fields(sql), " ") + ";\n" }
	onTeam := func(sql string) string { return one(strings.ReplaceAll(sql, "$1", team)) }
	post := strings.NewReplacer(
		"@debit", "'"+testClearing.String()+"'", "@credit", account, "@amount", "10000", "@code", "'credit'", "@key", key,
		"@team", team, "@kind", "null", "@resource", "null", "@segment", "null", "@from", "null", "@to", "null", "@day", "null",
		"@reference", "'pi_test_'", "@description", "''", "@at", "'2027-03-14 12:00:00+00'",
		"@balance", "balance_usd_micro + 10000", "@receivable", "0", "@settled", "settled_us", "@due", "due_us",
		"@burn", "burn_usd_micro_per_hour", "@pod_burn", "pod_burn_usd_micro_per_hour", "@exhausts", "exhausts_us",
		"@exhausted", "exhausted_us", "@switch_off", "switch_off_us", "@month", "month_us", "@spent", "month_spent_usd_micro",
		"@warned", "warned", "@warn", "warn_us", "@empty", "empty_us", "@arrears_end", "arrears_end_us", "@arrears", "arrears_us", "@step", "arrears_step",
		"@spend_look", "spend_us", "@spend_month", "spend_month_us", "@stage", "spend_stage", "@limit", "limit_us", "@next", "next_us",
	).Replace(sqlPostCredit)
	return "\\set n random(1, :teams)\n\\set k random(1, 9000000000000000000)\nbegin;\n" +
		strings.Replace(onTeam(sqlLockBook), ";\n", " \\gset\n", 1) +
		"\\if :version <> :read_version\n" + onTeam(sqlListUnsettled) + "\\endif\n" +
		one(post) + "end;\n"
}
