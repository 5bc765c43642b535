package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"grl/limiter"
	"grl/limiter/httplimit"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/client/proxy"
)

const (
	greet = "/payments.v1.Greeter/Greet"
	chat  = "/payments.v1.Greeter/Chat"
)

// greeter is a grpc-go server: Greet answers with metadata or, asked for an
// error, with one that has details; Chat answers each message before the next.
func greeter(t testing.TB) (addr string) {
	t.Helper()
	srv := grpc.NewServer()
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: "payments.v1.Greeter",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Greet", Handler: greetHandler}},
		Streams:     []grpc.StreamDesc{{StreamName: "Chat", Handler: chatHandler, ServerStreams: true, ClientStreams: true}},
	}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func greetHandler(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.StringValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	md, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetHeader(ctx, metadata.Pairs("head", "h", "seen-bin", string(first(md["sent-bin"]))))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("tail", "t"))
	if in.Value == "error" {
		s, err := status.New(codes.FailedPrecondition, "größer als 100 %").WithDetails(&errdetails.ErrorInfo{Reason: "WHY"})
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	}
	return wrapperspb.String("hello " + in.Value + " from " + first(md["rpc-caller"])), nil
}

func chatHandler(_ any, stream grpc.ServerStream) error {
	stream.SetTrailer(metadata.Pairs("tail", "t"))
	for {
		in := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(in); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(wrapperspb.String("re: " + in.Value)); err != nil {
			return err
		}
	}
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func grpcClient(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sidecarsTo returns clients that reach the gRPC server at addr through an
// inbound and through an outbound sidecar.
func sidecarsTo(t testing.TB, addr string) map[string]*grpc.ClientConn {
	t.Helper()
	return map[string]*grpc.ClientConn{
		"inbound":     grpcClient(t, inbound(t, "http://"+addr, proxy.Options{})),
		"inbound h2c": grpcClient(t, inbound(t, "h2c://"+addr, proxy.Options{})),
		"outbound":    grpcClient(t, outbound(t, limiter.New(limiter.Options{})), grpc.WithAuthority(addr)),
	}
}

func TestGRPCUnary(t *testing.T) {
	for name, conn := range sidecarsTo(t, greeter(t)) {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "rpc-caller", "checkout", "sent-bin", "\x00\xff")
			var head, tail metadata.MD
			out := new(wrapperspb.StringValue)
			err := conn.Invoke(ctx, greet, wrapperspb.String("you"), out, grpc.Header(&head), grpc.Trailer(&tail))
			if err != nil || out.Value != "hello you from checkout" {
				t.Errorf("%q, %v", out.Value, err)
			}
			if first(head["head"]) != "h" || first(head["seen-bin"]) != "\x00\xff" || first(tail["tail"]) != "t" {
				t.Errorf("header %v, trailer %v", head, tail)
			}
			big := strings.Repeat("x", 3<<20) // bytes; grpc-go takes up to 4 MiB
			if err := conn.Invoke(ctx, greet, wrapperspb.String(big), out); err != nil || len(out.Value) < len(big) {
				t.Errorf("big message: %d bytes, %v", len(out.Value), err)
			}
		})
	}
}

func TestGRPCErrors(t *testing.T) {
	for name, conn := range sidecarsTo(t, greeter(t)) {
		t.Run(name, func(t *testing.T) {
			err := conn.Invoke(t.Context(), greet, wrapperspb.String("error"), new(wrapperspb.StringValue))
			s := status.Convert(err)
			if s.Code() != codes.FailedPrecondition || s.Message() != "größer als 100 %" || len(s.Details()) != 1 {
				t.Errorf("error %v, details %v", err, s.Details())
			}
			err = conn.Invoke(t.Context(), "/payments.v1.Greeter/Unknown", wrapperspb.String(""), new(wrapperspb.StringValue))
			if status.Code(err) != codes.Unimplemented {
				t.Errorf("unknown method: %v", err)
			}
		})
	}
}

func TestGRPCStreamsBothWaysAtOnce(t *testing.T) {
	for name, conn := range sidecarsTo(t, greeter(t)) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := contextWithCancel(t)
			defer cancel()
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, chat)
			if err != nil {
				t.Fatal(err)
			}
			// Each answer is awaited before the next message, so nothing on the
			// way may wait for more bytes or for the end.
			for i := range 50 {
				if err := stream.SendMsg(wrapperspb.String(fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
				in := new(wrapperspb.StringValue)
				if err := stream.RecvMsg(in); err != nil || in.Value != fmt.Sprint("re: ", i) {
					t.Fatalf("message %d: %q, %v", i, in.Value, err)
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
			if first(stream.Trailer()["tail"]) != "t" {
				t.Errorf("trailer %v", stream.Trailer())
			}
		})
	}
}

func TestGRPCManyStreamsOnOneConnection(t *testing.T) {
	conn := grpcClient(t, inbound(t, "http://"+greeter(t), proxy.Options{}))
	var streams []grpc.ClientStream
	for range 300 { // more than the 100 that servers of net/http allow
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, chat)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	for _, s := range streams {
		if err := s.SendMsg(wrapperspb.String("x")); err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range streams {
		_ = s.CloseSend()
		if err := s.RecvMsg(new(wrapperspb.StringValue)); err != io.EOF {
			t.Fatal(err)
		}
	}
}

func TestGRPCDrop(t *testing.T) {
	l := limited(t, limiter.Inbound, limiter.Bucket{Match: limiter.Match{Caller: "checkout", Procedure: "payments.v1.Greeter/Chat"}})
	conn := grpcClient(t, inbound(t, "http://"+greeter(t), proxy.Options{
		Limiter:  l,
		Identity: identity(t, httplimit.IdentityConfig{Headers: []string{"rpc-caller"}}),
	}))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "rpc-caller", "checkout")
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, chat)
	if err != nil {
		t.Fatal(err)
	}
	s := status.Convert(stream.RecvMsg(new(wrapperspb.StringValue)))
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 2 {
		t.Fatalf("%v, details %v", s, s.Details())
	}
	info, ok := s.Details()[1].(*errdetails.ErrorInfo)
	if !ok || info.Reason != "GRL_DROP" || info.Metadata["bucket"] != "payments/all" || info.Metadata["owner"] != "team-payments" {
		t.Errorf("details %v", s.Details())
	}
	if err := conn.Invoke(ctx, greet, wrapperspb.String("you"), new(wrapperspb.StringValue)); err != nil {
		t.Errorf("another procedure: %v", err)
	}
}

func TestGRPCDeadUpstreamIsUnavailable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	_ = l.Close()
	conn := grpcClient(t, inbound(t, "http://"+dead, proxy.Options{}))
	err = conn.Invoke(t.Context(), greet, wrapperspb.String(""), new(wrapperspb.StringValue))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
}

// view is a Connect service.
type view struct {
	grlv1connect.UnimplementedViewServiceHandler
}

func (view) ListBuckets(_ context.Context, r *grlv1.ListBucketsRequest) (*grlv1.ListBucketsResponse, error) {
	return &grlv1.ListBucketsResponse{Buckets: []*grlv1.BucketView{{Bucket: r.Service + "/all"}}}, nil
}

func TestConnect(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(grlv1connect.NewViewServiceHandler(view{}))
	up := origin(t, mux)
	l := limited(t, limiter.Inbound, limiter.Bucket{Match: limiter.Match{Procedure: "grl.v1.ViewService/GetFleet"}})
	for _, upstream := range []string{up.URL, strings.Replace(up.URL, "http", "h2c", 1)} {
		addr := inbound(t, upstream, proxy.Options{Limiter: l})
		for name, opts := range map[string][]connect.ClientOption{
			"Connect":     nil,
			"Connect GET": {connect.WithHTTPGet()},
			"gRPC":        {connect.WithGRPC()},
			"gRPC-Web":    {connect.WithGRPCWeb()},
		} {
			t.Run(upstream[:4]+" "+name, func(t *testing.T) {
				c := grlv1connect.NewViewServiceClient(client(t, true), "http://"+addr, opts...)
				res, err := c.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{Service: "payments"})
				if err != nil || len(res.Buckets) != 1 || res.Buckets[0].Bucket != "payments/all" {
					t.Errorf("%v, %v", res, err)
				}
				if _, err := c.GetHistory(t.Context(), &grlv1.GetHistoryRequest{}); connect.CodeOf(err) != connect.CodeUnimplemented {
					t.Errorf("a procedure that the service lacks: %v", err)
				}
				if _, err := c.GetFleet(t.Context(), &grlv1.GetFleetRequest{}); connect.CodeOf(err) != connect.CodeResourceExhausted {
					t.Errorf("dropped: %v", err)
				}
			})
		}
	}
}
