module talkative

go 1.24

require (
	github.com/pulumi/pulumi/sdk/v3 v3.200.0
	google.golang.org/grpc v1.71.1
)

require (
	golang.org/x/net v0.39.0 // indirect
	golang.org/x/sys v0.33.0 // indirect
	golang.org/x/text v0.26.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250115164207-1a7da9e5054f // indirect
	google.golang.org/protobuf v1.36.6 // indirect
)
