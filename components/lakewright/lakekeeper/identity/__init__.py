"""The User, Role and RoleMembers resources."""
