package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// sendHTTP2 sends one request with body on a fresh connection, as an attacker
// would: fields replace pseudo-headers of the same name or follow them,
// unchecked. It returns when the stream or the connection has ended.
func sendHTTP2(conn net.Conn, fields [][2]string, body string) error {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	block := encodeHead(fields)
	err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true})
	if err != nil {
		return err
	}
	if err := framer.WriteData(1, true, []byte(body)); err != nil {
		return err
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.RSTStreamFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return fmt.Errorf("stream reset: %v", f.ErrCode)
			}
			return nil
		case *http2.GoAwayFrame:
			return fmt.Errorf("connection refused: %v", f.ErrCode)
		}
		if h := frame.Header(); h.StreamID == 1 && h.Flags.Has(http2.FlagDataEndStream) {
			return nil
		}
	}
}

func encodeHead(fields [][2]string) []byte {
	pseudo := [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/a"}}
	var rest [][2]string
next:
	for _, f := range fields {
		for i := range pseudo {
			if pseudo[i][0] == f[0] {
				pseudo[i] = f
				continue next
			}
		}
		rest = append(rest, f)
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range append(pseudo, rest...) {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // to memory
	}
	return block.Bytes()
}
