// A resource provider that logs to the engine, reports its status, waits, or crashes, as its resource asks.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

const waitLimit = time.Minute

type provider struct {
	pulumirpc.UnimplementedResourceProviderServer
	engine pulumirpc.EngineClient
}

// connect uses the address that TALKATIVE_ENGINE chooses. Like some real plugins it goes on without an engine, and
// crashes at its first message.
func (p *provider) connect(source, address string) error {
	if source != os.Getenv("TALKATIVE_ENGINE") || address == "" {
		return nil
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	p.engine = pulumirpc.NewEngineClient(connection)
	return nil
}

func (p *provider) log(ctx context.Context, urn string, severity pulumirpc.LogSeverity, status bool, text string) {
	request := &pulumirpc.LogRequest{Severity: severity, Message: text, Urn: urn, Ephemeral: status, StreamId: 7}
	if _, err := p.engine.Log(ctx, request); err != nil {
		fmt.Fprintln(os.Stderr, "the engine refused a message:", err)
	}
}

func (p *provider) Handshake(
	_ context.Context, request *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true}, p.connect("handshake", request.EngineAddress)
}

func (p *provider) Attach(_ context.Context, request *pulumirpc.PluginAttach) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, p.connect("attach", request.Address)
}

func (p *provider) CheckConfig(
	_ context.Context, request *pulumirpc.CheckRequest,
) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: request.News}, nil
}

func (p *provider) DiffConfig(context.Context, *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	return &pulumirpc.DiffResponse{}, nil
}

func (p *provider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true}, nil
}

func (p *provider) Check(_ context.Context, request *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: request.News}, nil
}

func (p *provider) Diff(context.Context, *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	return &pulumirpc.DiffResponse{}, nil
}

func (p *provider) Create(
	ctx context.Context, request *pulumirpc.CreateRequest,
) (*pulumirpc.CreateResponse, error) {
	if request.Preview {
		return &pulumirpc.CreateResponse{Properties: request.Properties}, nil
	}
	if request.Properties.Fields["crash"].GetBoolValue() {
		p.engine = nil
	}
	p.log(ctx, request.Urn, pulumirpc.LogSeverity_DEBUG, false, "details for the authors")
	p.log(ctx, request.Urn, pulumirpc.LogSeverity_INFO, false, "making the thing")
	p.log(ctx, request.Urn, pulumirpc.LogSeverity_WARNING, false, "things are deprecated")
	p.log(ctx, request.Urn, pulumirpc.LogSeverity_INFO, true, "waiting for the gate")
	fmt.Fprintln(os.Stderr, "plain output of the plugin")
	if err := wait(ctx, request.Properties.Fields["gate"].GetStringValue()); err != nil {
		return nil, err
	}
	return &pulumirpc.CreateResponse{Id: "thing-1", Properties: request.Properties}, nil
}

func wait(ctx context.Context, gate string) error {
	limit, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for gate != "" {
		if _, err := os.Stat(gate); err == nil {
			return nil
		}
		select {
		case <-limit.Done():
			return errors.New("the gate was not opened")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func (p *provider) Delete(ctx context.Context, request *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	p.log(ctx, request.Urn, pulumirpc.LogSeverity_INFO, false, "taking the thing away")
	return &emptypb.Empty{}, nil
}

func serve() error {
	served := &provider{}
	if len(os.Args) > 1 {
		if err := served.connect("argument", os.Args[1]); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pulumirpc.RegisterResourceProviderServer(server, served)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	return server.Serve(listener)
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
