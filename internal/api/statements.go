package api

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/statement"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

func (s *server) registerStatements() {
	session(s, huma.Operation{
		OperationID: "list-statements", Method: http.MethodGet, Path: "/wallet/statements",
		Summary: "The months of the wallet, newest first: the newest is not over yet",
	}, s.statements)
	file := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	session(s, huma.Operation{
		OperationID: "get-statement", Method: http.MethodGet, Path: "/wallet/statements/{file}",
		Summary: "A month's statement as a file: 2027-03.csv or 2027-03.pdf",
		Responses: map[string]*huma.Response{"200": {
			Description: "The file", Content: map[string]*huma.MediaType{"text/csv": {Schema: file}, "application/pdf": {Schema: file}},
		}},
	}, s.statement)
	session(s, huma.Operation{
		OperationID: "get-spend", Method: http.MethodGet, Path: "/wallet/spend",
		Summary: "What was spent on some UTC days, by pod, volume, member or day: charges less refunds",
	}, s.spend)
}

type statementsIn struct {
	Bearer
	InTeam
}

func (s *server) statements(ctx context.Context, p team.Person, in statementsIn) (*list[apitype.Statement], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	months, err := s.Statements.List(ctx, scope)
	if err != nil {
		return nil, err
	}
	now := s.Clock.Now()
	return listOf(months, func(m wallet.Month) apitype.Statement {
		return apitype.Statement{
			Month: m.Start.Format("2006-01"), Final: !now.Before(m.End),
			OpeningBalance: apitype.Decimal(m.Opening.Decimal()), Credits: apitype.Decimal(m.Credits.Decimal()),
			Charges: apitype.Decimal(m.Charges.Decimal()), Refunds: apitype.Decimal(m.Refunds.Decimal()),
			Debits: apitype.Decimal(m.Debits.Decimal()), ClosingBalance: apitype.Decimal(m.Closing.Decimal()),
		}
	}), nil
}

type statementIn struct {
	Bearer
	InTeam
	File string `path:"file" example:"2027-03.pdf" doc:"A month and .csv or .pdf."`
}

type fileOut struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	Body               []byte
}

func (s *server) statement(ctx context.Context, p team.Person, in statementIn) (*fileOut, error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	month, kind, _ := strings.Cut(in.File, ".")
	if kind != "csv" && kind != "pdf" {
		return nil, statement.ErrNoMonth
	}
	made, err := s.Statements.Make(ctx, scope, month)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	out := &fileOut{
		ContentType:        "text/csv; charset=utf-8",
		ContentDisposition: `attachment; filename="homeport-statement-` + in.File + `"`,
	}
	if kind == "csv" {
		err = made.WriteCSV(&file)
	} else {
		out.ContentType = "application/pdf"
		err = made.WritePDF(&file)
	}
	out.Body = file.Bytes()
	return out, err
}

type spendIn struct {
	Bearer
	InTeam
	From string `query:"from" doc:"The first UTC day, as 2027-03-01; without it the first of this month."`
	To   string `query:"to" doc:"The last UTC day, included; without it today. At most 366 days."`
	By   string `query:"by" enum:"pod,volume,member,day" default:"day"`
}

func (s *server) spend(ctx context.Context, p team.Person, in spendIn) (*list[apitype.Spend], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	lines, err := s.Statements.Spend(ctx, scope, in.From, in.To, statement.By(in.By))
	if err != nil {
		return nil, err
	}
	return listOf(lines, func(l statement.Line) apitype.Spend {
		return apitype.Spend{
			Key: text(l.Key), Name: l.Name, Pods: apitype.Decimal(l.Pods.Decimal()),
			Storage: apitype.Decimal(l.Storage.Decimal()), Total: apitype.Decimal((l.Pods + l.Storage).Decimal()),
		}
	}), nil
}
