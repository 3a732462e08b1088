//! Keeps out pages of a browser that have no business here: those that another site has sent, and those that reached this
//! listener by a name that was bent to it. It looks at nothing but the two headers that a page cannot choose.

use std::net::IpAddr;

use http::header::{HOST, HeaderName, ORIGIN};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Uri};

/// The names under which a listener is called, beside its own address and those of its machine.
pub(super) struct Guard(Vec<String>);

impl Guard {
    pub(super) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| plain(name)).collect())
    }

    /// Whether a request may be looked at, which came in at this address of ours.
    pub(super) fn lets_in(&self, headers: &HeaderMap, uri: &Uri, ours: IpAddr, tls: bool) -> bool {
        let Some(host) = only(headers, &HOST).and_then(|host| host.parse::<Authority>().ok())
        else {
            return false;
        };
        let called = Some(&host).into_iter().chain(uri.authority());
        let well_called = called
            .into_iter()
            .all(|it| !it.as_str().contains('@') && self.is_ours(it.host(), ours));
        well_called
            && (!headers.contains_key(ORIGIN) || self.is_from_here(headers, &host, ours, tls))
    }

    /// Whether a host's name is one of this listener.
    fn is_ours(&self, name: &str, ours: IpAddr) -> bool {
        is_loopback(name)
            || address(name) == Some(ours.to_canonical())
            || self.0.contains(&plain(name))
    }

    /// Whether the page that asks was sent from here: by this listener itself, or by another program of this machine where
    /// only this machine can reach us.
    fn is_from_here(&self, headers: &HeaderMap, host: &Authority, ours: IpAddr, tls: bool) -> bool {
        let origin = only(headers, &ORIGIN).and_then(|origin| origin.parse::<Uri>().ok());
        let Some((scheme, origin)) = origin
            .as_ref()
            .and_then(|it| it.scheme().zip(it.authority()))
        else {
            return false;
        };
        let is_secure = *scheme == Scheme::HTTPS;
        // Without TLS of our own there may be somebody before us who has it.
        let well_schemed = is_secure || *scheme == Scheme::HTTP && !tls;
        if !well_schemed || !self.is_ours(origin.host(), ours) {
            return false;
        }
        let usual = if is_secure { 443 } else { 80 };
        let port = |authority: &Authority| authority.port_u16().unwrap_or(usual);
        let same = plain(origin.host()) == plain(host.host()) && port(origin) == port(host);
        same || is_loopback(origin.host()) && ours.to_canonical().is_loopback()
    }
}

/// The text of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// One spelling of a name.
fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn address(name: &str) -> Option<IpAddr> {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address: IpAddr = bare.unwrap_or(name).parse().ok()?;
    Some(address.to_canonical())
}

fn is_loopback(name: &str) -> bool {
    plain(name) == "localhost" || address(name).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1";
    const THERE: &str = "192.0.2.7";

    fn lets_in(host: Option<&str>, origin: Option<&str>, ours: &str, tls: bool) -> bool {
        let guard = Guard::new(&["Box.Example".to_owned()]);
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().unwrap());
            }
        }
        guard.lets_in(
            &headers,
            &Uri::from_static("/attach"),
            ours.parse().unwrap(),
            tls,
        )
    }

    #[test]
    fn only_own_names_are_answered_to() {
        for (host, ours, is_in) in [
            (Some("127.0.0.1:7433"), HERE, true),
            (Some("127.0.0.1"), HERE, true),
            (Some("localhost:1"), HERE, true),
            (Some("LOCALHOST."), HERE, true),
            (Some("[::1]:7433"), HERE, true),
            (Some("box.example:7433"), THERE, true),
            (Some("BOX.example."), HERE, true),
            (Some("192.0.2.7:7433"), THERE, true),
            (Some("[::ffff:192.0.2.7]"), THERE, true),
            (Some("192.0.2.7:7433"), HERE, false),
            (Some("192.0.2.8:7433"), THERE, false),
            (Some("evil.example"), HERE, false),
            (Some("localhost.evil.example"), HERE, false),
            (Some("127.0.0.1.evil.example"), HERE, false),
            (Some("evil.example@127.0.0.1"), HERE, false),
            (Some("127.0.0.1@evil.example"), HERE, false),
            (Some("127.1"), HERE, false),
            (Some("2130706433"), HERE, false),
            (Some("0.0.0.0"), HERE, false),
            (Some(""), HERE, false),
            (Some("a b"), HERE, false),
            (None, HERE, false),
        ] {
            assert_eq!(
                lets_in(host, None, ours, false),
                is_in,
                "{host:?} at {ours}"
            );
        }
    }

    #[test]
    fn only_pages_from_here_are_answered() {
        let public = Some("box.example:7433");
        for (host, origin, ours, tls, is_in) in [
            (
                Some("127.0.0.1:7433"),
                "http://127.0.0.1:7433",
                HERE,
                false,
                true,
            ),
            (
                Some("127.0.0.1:7433"),
                "http://localhost:3000",
                HERE,
                false,
                true,
            ),
            (Some("127.0.0.1:7433"), "null", HERE, false, false),
            (Some("127.0.0.1:7433"), "", HERE, false, false),
            (
                Some("127.0.0.1:7433"),
                "https://evil.example",
                HERE,
                false,
                false,
            ),
            (
                Some("127.0.0.1:7433"),
                "http://localhost.evil.example",
                HERE,
                false,
                false,
            ),
            (
                Some("127.0.0.1:7433"),
                "http://box.example:7433",
                HERE,
                false,
                false,
            ),
            (
                Some("127.0.0.1:7433"),
                "file://localhost",
                HERE,
                false,
                false,
            ),
            (
                Some("127.0.0.1:7433"),
                "chrome-extension://abcdef",
                HERE,
                false,
                false,
            ),
            (public, "https://box.example:7433", THERE, true, true),
            (public, "https://BOX.example:7433", THERE, true, true),
            (public, "http://box.example:7433", THERE, true, false),
            (public, "https://box.example", THERE, true, false),
            (public, "https://evil.example:7433", THERE, true, false),
            // A page of the asker's own machine is a foreign one.
            (public, "http://localhost:3000", THERE, true, false),
            (
                Some("box.example"),
                "https://box.example",
                THERE,
                true,
                true,
            ),
            // Somebody before us has the TLS.
            (
                Some("box.example"),
                "https://box.example",
                HERE,
                false,
                true,
            ),
        ] {
            let let_in = lets_in(host, Some(origin), ours, tls);
            assert_eq!(let_in, is_in, "{origin} to {host:?} at {ours}");
        }
    }

    #[test]
    fn two_of_a_header_are_one_too_many() {
        for name in [HOST, ORIGIN] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost".parse().unwrap());
            headers.insert(ORIGIN, "http://localhost".parse().unwrap());
            let ours = HERE.parse().unwrap();
            let uri = Uri::from_static("/");
            let guard = Guard::new(&[]);
            assert!(guard.lets_in(&headers, &uri, ours, false));
            let foreign = Uri::from_static("http://evil.example/attach");
            assert!(!guard.lets_in(&headers, &foreign, ours, false));
            headers.append(&name, headers[&name].clone());
            assert!(!guard.lets_in(&headers, &uri, ours, false), "{name}");
        }
    }
}
