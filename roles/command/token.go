package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

// Token returns the command that creates, lists and revokes API tokens.
func Token() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list or revoke API tokens",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return wrongUse(errors.New("name what to do: create, list or revoke"))
		},
	}
	call.connects(cmd)
	cmd.AddCommand(createToken(&call), listTokens(&call), revokeToken(&call))
	return cmd
}

func createToken(call *calling) *cobra.Command {
	var request grlv1.CreateTokenRequest
	var role, lifetime string
	cmd := &cobra.Command{
		Use:   "create NAME --role viewer|editor|admin",
		Short: "Create a token, which is printed this once",
		Long: `Create a token that may do at most what its account may. It is printed this once, and
nothing else on the output; the controller keeps a hash of it.`,
		Example: "  grl token create ci --role editor --service payments --for 90d > token",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			request.Name = args[0]
			if request.Role, err = parseRole(role); err != nil {
				return err
			}
			d, err := parseSpan(lifetime)
			if err != nil {
				return wrongUse(fmt.Errorf("--for: %w", err))
			}
			request.DurationMs = d.Milliseconds()
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			answer, err := conn.Access.CreateToken(cmd.Context(), &request)
			if err != nil {
				return err
			}
			token := answer.GetToken()
			fmt.Fprint(cmd.ErrOrStderr(), terminal.Printable(fmt.Sprintf("token %s (%s) of %s, %s, until %s; it is not shown again\n",
				token.GetId(), token.GetName(), token.GetAccount(), roleText(token.GetRole()), moment(token.GetExpiresAtMs()))))
			return call.print(cmd.OutOrStdout(), answer, func() string { return answer.GetSecret() + "\n" })
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&role, "role", "", "viewer, editor or admin; at most that of the account")
	cmd.Flags().StringSliceVar(&request.Services, "service", nil, "`service` to which an editor is restricted; several by repeating")
	cmd.Flags().StringVar(&lifetime, "for", "90d", "how long it lives, 1m to 366d")
	cmd.Flags().StringVar(&request.Account, "account", "", "`account` whose it is (default: your own)")
	return cmd
}

func listTokens(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens that there are, without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := conn.Access.ListTokens(cmd.Context(), &grlv1.ListTokensRequest{})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string {
				t := terminal.Table{Columns: []string{"id", "name", "account", "role", "services", "created", "expires", "used"}}
				for _, k := range list.GetTokens() {
					t.Add(k.GetId(), k.GetName(), k.GetAccount(), roleText(k.GetRole()), dash(strings.Join(k.GetServices(), ", ")),
						moment(k.GetCreatedAtMs()), moment(k.GetExpiresAtMs()), moment(k.GetUsedAtMs()))
				}
				return t.String()
			})
		},
	}
	call.prints(cmd)
	return cmd
}

func revokeToken(call *calling) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token, at once",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			if _, err := conn.Access.RevokeToken(cmd.Context(), &grlv1.RevokeTokenRequest{Id: args[0]}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked token %s\n", args[0])
			return err
		},
	}
}
