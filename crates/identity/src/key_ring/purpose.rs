//! The purposes of sealed values. A value sealed for one never opens for another.

/// The purpose of a sealed value or an authenticator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealPurpose {
    /// Access tokens of the authorization server.
    AccessToken,
    /// Refresh tokens.
    RefreshToken,
    /// Authorization requests that travel in the URL between their pages.
    AuthorizationFlow,
    /// The cookie of a sign-in at an issuer.
    SignInCookie,
    /// CSRF tokens of the pages.
    PageToken,
    /// Proofs that a sign-in led to the console.
    SignInProof,
    /// Ids of dynamically registered clients.
    ClientId,
    /// Secrets of dynamically registered clients.
    ClientSecret,
    /// Refresh tokens of the issuer that signs users in.
    IssuerToken,
    /// Credentials of users at servers.
    UserCredential,
    /// Tickets that lead a user to the login at a server.
    ConnectTicket,
}

impl SealPurpose {
    /// Every purpose.
    pub const ALL: [Self; 11] = [
        Self::AccessToken,
        Self::RefreshToken,
        Self::AuthorizationFlow,
        Self::SignInCookie,
        Self::PageToken,
        Self::SignInProof,
        Self::ClientId,
        Self::ClientSecret,
        Self::IssuerToken,
        Self::UserCredential,
        Self::ConnectTicket,
    ];

    /// Returns the word from which keys are derived. It must never change.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AccessToken => "access-token",
            Self::RefreshToken => "refresh-token",
            Self::AuthorizationFlow => "authorization-flow",
            Self::SignInCookie => "sign-in-cookie",
            Self::PageToken => "page-token",
            Self::SignInProof => "sign-in-proof",
            Self::ClientId => "client-id",
            Self::ClientSecret => "client-secret",
            Self::IssuerToken => "issuer-token",
            Self::UserCredential => "user-credential",
            Self::ConnectTicket => "connect-ticket",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_purposes_share_their_keys() {
        let words: BTreeSet<&str> = SealPurpose::ALL.into_iter().map(SealPurpose::as_str).collect();
        assert_eq!(words.len(), SealPurpose::ALL.len());
        // No word ends where another goes on: keys are derived from `consort/1/USAGE/WORD`.
        assert!(words.iter().all(|word| !word.contains('/')));
    }
}
