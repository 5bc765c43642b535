package command

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

// auditPage is how many entries a call asks for.
const auditPage = 1000

// Audit returns the command that lists who changed what.
func Audit() *cobra.Command {
	var call calling
	var request grlv1.ListAuditRequest
	var limit int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who changed what, when, from where and why",
		Long: `List the entries of the audit, the newest first. A subject also selects what is
below it: payments selects payments/checkout. --json prints one entry a line.`,
		Example: "  grl audit --subject payments --limit 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return wrongUse(errors.New("--limit is below 0"))
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			entries, err := listAudit(cmd, conn, &request, limit)
			if err != nil {
				return err
			}
			format, err := call.format()
			if err != nil {
				return err
			}
			if format == "json" {
				return printLines(cmd.OutOrStdout(), entries)
			}
			return call.print(cmd.OutOrStdout(), &grlv1.ListAuditResponse{Entries: entries}, func() string { return auditTable(entries) })
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	cmd.Flags().StringVar(&request.Actor, "actor", "", "only what this `account` did")
	cmd.Flags().StringVar(&request.Action, "action", "", "only this `action`, such as apply or cap.place")
	cmd.Flags().StringVar(&request.Subject, "subject", "", "only what was done to this `service` or bucket")
	cmd.Flags().Uint64Var(&request.Before, "before", 0, "only entries below this `number`")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many; 0: all")
	cmd.AddCommand(verifyAudit(&call))
	return cmd
}

// listAudit returns up to limit entries, of as many pages as it takes; limit 0
// is all.
func listAudit(cmd *cobra.Command, conn *remote.Conn, r *grlv1.ListAuditRequest, limit int) ([]*grlv1.AuditEntry, error) {
	var all []*grlv1.AuditEntry
	for {
		r.PageSize = auditPage
		if limit > 0 {
			r.PageSize = uint32(min(auditPage, limit-len(all)))
		}
		page, err := conn.Audit.ListAudit(cmd.Context(), r)
		if err != nil {
			return nil, err
		}
		entries := page.GetEntries()
		all = append(all, entries...)
		if len(entries) < int(r.GetPageSize()) || len(all) == limit {
			return all, nil
		}
		r.Before = entries[len(entries)-1].GetNumber()
	}
}

func auditTable(entries []*grlv1.AuditEntry) string {
	t := terminal.Table{Columns: []string{">entry", "at", "actor", "from", "action", "subjects", ">revision", "reason"}}
	for _, e := range entries {
		revision, action := "-", e.GetAction()
		if e.GetRevision() > 0 {
			revision = "r" + countText(e.GetRevision())
		}
		if e.GetForced() {
			action += " (forced)"
		}
		t.Add(countText(e.GetNumber()), moment(e.GetAtMs()), e.GetActor(), dash(e.GetFrom()), action, subjectsText(e.GetSubjects()), revision, dash(e.GetReason()))
	}
	return t.String()
}

func subjectsText(subjects []string) string {
	const most = 3
	if len(subjects) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(subjects[:most], ", "), len(subjects)-most)
	}
	return dash(strings.Join(subjects, ", "))
}

// printLines writes one JSON object a line.
func printLines(w io.Writer, entries []*grlv1.AuditEntry) error {
	for _, e := range entries {
		text, err := jsonText(e)
		if err != nil {
			return err
		}
		var line bytes.Buffer
		if err := json.Compact(&line, text); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// verifyAudit returns the command that goes through the whole chain. It exits
// with ExitNotHolds when an entry does not hold.
func verifyAudit(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Go through the whole audit: was an entry changed, removed or moved?",
		Long: `Go through the whole chain of the audit. The exit code is 3 when an entry does not
hold. The hash of the newest entry, kept elsewhere, proves later that nothing was cut
off.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Audit.VerifyAudit(remote.WithTimeout(cmd.Context(), applyTimeout), &grlv1.VerifyAuditRequest{})
			if err != nil {
				return err
			}
			err = call.print(cmd.OutOrStdout(), answer, func() string { return verifiedText(answer) })
			if err == nil && answer.GetBrokenEntry() > 0 {
				return &ExitError{Code: ExitNotHolds}
			}
			return err
		},
	}
	call.prints(cmd)
	return cmd
}

func verifiedText(v *grlv1.VerifyAuditResponse) string {
	if v.GetBrokenEntry() > 0 {
		return terminal.Printable(fmt.Sprintf("broken: entry %d of %d: %s\n", v.GetBrokenEntry(), v.GetEntries(), v.GetBrokenReason()))
	}
	if v.GetEntries() == 0 {
		return "ok: no entries yet\n"
	}
	return fmt.Sprintf("ok: entries 1 to %d, the newest has hash %s\n", v.GetEntries(), hex.EncodeToString(v.GetHash()))
}
