# The same for Terraform.
terraform {
  required_providers {
    lakekeeper = { source = "baptistegh/lakekeeper" }
  }
}

variable "endpoint" { type = string }
variable "auth_url" { type = string }

provider "lakekeeper" {
  endpoint          = var.endpoint
  auth_url          = var.auth_url
  client_id         = "bench"
  client_secret     = "bench"
  initial_bootstrap = false
}

resource "lakekeeper_project" "p" {
  count = 100
  name  = "terraform ${count.index}"
}

resource "lakekeeper_role" "readers" {
  count       = 100
  project_id  = lakekeeper_project.p[count.index].id
  name        = "readers"
  description = "Bench."
}

resource "lakekeeper_role" "writers" {
  count       = 100
  project_id  = lakekeeper_project.p[count.index].id
  name        = "writers"
  description = "Bench."
}
