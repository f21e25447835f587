//! Examples in the help of commands about users.

pub(super) const KEY_NEW: &str = "\
Examples:
  consort key new laptop
  consort key new build --service ci --endpoint /mcp/review --expires 30d
  consort key new monitoring --user ada --expires never --json";

pub(super) const KEY_LIST: &str = "\
Examples:
  consort key list
  consort key list --json | jq '.[] | select(.last_used_at == null)'";

pub(super) const KEY_REVOKE: &str = "\
Examples:
  consort key revoke k3Xb9QaZ
  consort key revoke k3Xb9QaZ --yes";

pub(super) const USER_ADD: &str = "\
Examples:
  consort user add ada";

pub(super) const USER_LIST: &str = "\
Examples:
  consort user list
  consort user list --json | jq '.[] | select(.suspended)'";

pub(super) const USER_REMOVE: &str = "\
Examples:
  consort user remove ada
  consort user remove acme/ada@acme.example --erase --yes";

pub(super) const USER_LINK: &str = "\
Examples:
  consort user link acme/ada@acme.example 00u1abcd";

pub(super) const USER_GRANTS: &str = "\
Examples:
  consort user grants ada";

pub(super) const USER_SIGN_OUT: &str = "\
Examples:
  consort user sign-out ada
  consort user sign-out --all --yes";

pub(super) const CLIENT_LIST: &str = "\
Examples:
  consort client list";

pub(super) const CLIENT_BLOCK: &str = "\
Examples:
  consort client block 5f0c2a9be1d4
  consort client block https://example.com/client.json --yes";

pub(super) const CLIENT_FORGET_ALL: &str = "\
Examples:
  consort client forget-all --yes";

pub(super) const WHOAMI: &str = "\
Examples:
  consort whoami
  consort whoami --token-file key.txt --at /mcp/review
  pass show consort | consort whoami --token-file - --json";
