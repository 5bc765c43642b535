package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

// Get returns the command that lists what a controller has.
func Get() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List buckets, caps, revisions, traffic or policies",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return wrongUse(errors.New("name what to get: buckets, caps, revisions, traffic or policies"))
		},
	}
	call.connects(cmd)
	cmd.AddCommand(getBuckets(&call), getCaps(&call), getRevisions(&call), getTraffic(&call), getPolicies(&call))
	return cmd
}

// orders are the words for the order of buckets.
var orders = map[string]grlv1.ListBucketsOrder{
	"name":    grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_UNSPECIFIED,
	"dropped": grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_DROPPED,
	"offered": grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_OFFERED,
}

// mostRows bounds what a call for a page of a list asks for.
const mostRows = 10_000

func getBuckets(call *calling) *cobra.Command {
	var order string
	cmd := &cobra.Command{
		Use:   "buckets [SERVICE]",
		Short: "List buckets with what is offered to them and dropped, a row for each cell",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, ok := orders[order]
			if !ok {
				return wrongUse(errors.New("--order is name, dropped or offered"))
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := allBuckets(cmd, conn, &grlv1.ListBucketsRequest{Service: strings.Join(args, ""), PageSize: mostRows, Order: o})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string { return bucketTable(list) })
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&order, "order", "name", "name, dropped or offered; of the last two at most 10,000 rows")
	return cmd
}

// allBuckets returns all pages of a list in one.
func allBuckets(cmd *cobra.Command, conn *remote.Conn, r *grlv1.ListBucketsRequest) (*grlv1.ListBucketsResponse, error) {
	all := &grlv1.ListBucketsResponse{}
	for {
		page, err := conn.View.ListBuckets(cmd.Context(), r)
		if err != nil {
			return nil, err
		}
		all.Revision, all.Total = page.GetRevision(), page.GetTotal()
		all.Buckets = append(all.Buckets, page.GetBuckets()...)
		for _, z := range page.GetSilent() {
			if !slices.ContainsFunc(all.Silent, func(other *grlv1.SilentZone) bool { return other.GetName() == z.GetName() }) {
				all.Silent = append(all.Silent, z)
			}
		}
		if page.GetNextPageToken() == "" {
			return all, nil
		}
		r = proto.CloneOf(r)
		r.PageToken = page.GetNextPageToken()
	}
}

// bucketTable shows cells.
func bucketTable(list *grlv1.ListBucketsResponse) string {
	t := terminal.Table{Columns: []string{
		"bucket", "cell", "behavior", ">limit", ">offered", ">admitted", ">dropped", ">shadow", ">drop", ">candidate", ">hosts", "owner",
	}}
	sum := func(b *grlv1.BucketView, rps float64) string {
		return atLeast(rps, b.GetSilentZones(), list.GetSilent())
	}
	for _, b := range list.GetBuckets() {
		candidate := "-"
		if b.CandidateRps != nil {
			candidate = limitText(b.GetCandidateRps())
		}
		t.Add(b.GetBucket(), cellText(b), behaviorText(b), gateText(b), sum(b, b.GetOfferedRps()), sum(b, b.GetAdmittedRps()),
			sum(b, b.GetDroppedRps()), sum(b, b.GetShadowDroppedRps()), share(b.GetDropRatio()), candidate, countText(b.GetHosts()), dash(b.GetOwner()))
	}
	return t.String() + terminal.Printable(silentText(list.GetSilent()))
}

// cellText names a cell within its bucket.
func cellText(b *grlv1.BucketView) string {
	var parts []string
	for _, p := range []string{b.GetInstance(), b.GetCaller(), b.GetClass()} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return dash(strings.Join(parts, " "))
}

func behaviorText(b *grlv1.BucketView) string {
	switch {
	case b.GetCapId() != "":
		return "cap"
	case b.GetBehavior() == grlv1.Behavior_BEHAVIOR_ALLOW:
		return "allow"
	default:
		return "deny"
	}
}

// gateText is the limit of a cell in requests per second.
func gateText(b *grlv1.BucketView) string {
	if b.GetBlock() {
		return "block"
	}
	return limitText(b.GetLimitRps())
}

func getCaps(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "caps [SERVICE]",
		Short: "List the caps in force and those that ramp out: grl cap list",
		Args:  cobra.MaximumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return listCaps(cmd, call, args) },
	}
	call.prints(cmd)
	return cmd
}

func getRevisions(call *calling) *cobra.Command {
	var limit, before uint32
	cmd := &cobra.Command{
		Use:   "revisions",
		Short: "List the revisions of the configuration, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := conn.Config.ListRevisions(cmd.Context(), &grlv1.ListRevisionsRequest{PageSize: limit, Before: uint64(before)})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string { return revisionTable(list.GetRevisions()) })
		},
	}
	call.prints(cmd)
	cmd.Flags().Uint32Var(&limit, "limit", 20, "at most so many, 1 to 1,000")
	cmd.Flags().Uint32Var(&before, "before", 0, "only those below this `revision`")
	return cmd
}

func revisionTable(revisions []*grlv1.Revision) string {
	t := terminal.Table{Columns: []string{">revision", "at", "author", "source", "reason"}}
	for _, r := range revisions {
		t.Add("r"+countText(r.GetNumber()), moment(r.GetAtMs()), dash(r.GetAuthor()), dash(r.GetSource()), dash(r.GetReason()))
	}
	return t.String()
}
