package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	grlv1 "grl/proto/grl/v1"
)

const protos = "../../../../../proto/grl/v1"

func TestDocumentIsUpToDate(t *testing.T) {
	want, err := render(protos)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/api.md is not what the proto files say: run go generate ./roles/controller/api")
	}
}

// Every procedure and message of the descriptors is found by the parser.
func TestParserFindsAll(t *testing.T) {
	proto, err := read(protos, files...)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range proto.services {
		for _, p := range s.procedures {
			found[s.name+"/"+p.name] = true
		}
	}
	for _, f := range []protoreflect.FileDescriptor{
		grlv1.File_grl_v1_config_proto, grlv1.File_grl_v1_incident_proto, grlv1.File_grl_v1_view_proto,
		grlv1.File_grl_v1_audit_proto, grlv1.File_grl_v1_access_proto, grlv1.File_grl_v1_rlc_proto, grlv1.File_grl_v1_tree_proto,
	} {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				if name := string(s.Name()) + "/" + string(s.Methods().Get(j).Name()); !found[name] {
					t.Errorf("procedure %s is missing", name)
				}
			}
		}
		for i := range f.Messages().Len() {
			checkFields(t, proto, f.Messages().Get(i))
		}
	}
}

func checkFields(t *testing.T, proto *file, want protoreflect.MessageDescriptor) {
	t.Helper()
	name := strings.TrimPrefix(string(want.FullName()), "grl.v1.")
	got := proto.messages[name]
	if got == nil || len(got.fields) != want.Fields().Len() {
		t.Errorf("message %s: %+v, want %d fields", name, got, want.Fields().Len())
	}
	for i := range want.Messages().Len() {
		if nested := want.Messages().Get(i); !nested.IsMapEntry() {
			checkFields(t, proto, nested)
		}
	}
}

// The bodies that the document shows are requests.
func TestExamples(t *testing.T) {
	for _, e := range examples {
		name := protoreflect.FullName("grl.v1." + strings.ReplaceAll(e.procedure, "/", "."))
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Errorf("%s: %v", e.procedure, err)
			continue
		}
		request := dynamicpb.NewMessage(d.(protoreflect.MethodDescriptor).Input())
		if err := protojson.Unmarshal([]byte(e.body), request); err != nil {
			t.Errorf("%s: %v", e.procedure, err)
		}
	}
}
