//! The listener that a daemon opens by itself, as the settings have it. Its keys come together from one place; whether others
//! may reach the address is decided where it is opened.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::written::WrittenDaemon;
use crate::web::{host_name, listen_address};

/// A listener for viewers elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfiguredListener {
    /// Its address.
    pub address: SocketAddr,
    /// The files of its certificate and of the key; none is plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Names by which it is called too.
    pub allow_hosts: Vec<String>,
}

impl ConfiguredListener {
    /// What one place says; none where it says nothing. An error names the key and what is wrong with it.
    pub(super) fn of(written: &WrittenDaemon) -> Result<Option<Self>, String> {
        let WrittenDaemon {
            idle_seconds: _,
            listen,
            tls_cert,
            tls_key,
            allow_hosts,
        } = written;
        let Some(listen) = listen else {
            let alone = [
                ("tls_cert", tls_cert.is_some()),
                ("tls_key", tls_key.is_some()),
                ("allow_hosts", allow_hosts.is_some()),
            ];
            return match alone.iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => Err(format!(
                    "daemon.{key} belongs to daemon.listen, which is not set here"
                )),
                None => Ok(None),
            };
        };
        let address = listen_address(listen).map_err(|why| format!("daemon.listen {why}"))?;
        if address.port() == 0 {
            return Err("daemon.listen must name a port: viewers come back to it".to_owned());
        }
        let tls = match (tls_cert, tls_key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            _ => return Err("daemon.tls_cert and daemon.tls_key belong together".to_owned()),
        };
        if let Some((certificate, key)) = &tls
            && !(certificate.is_absolute() && key.is_absolute())
        {
            return Err(
                "daemon.tls_cert and daemon.tls_key must be paths from the root on".to_owned(),
            );
        }
        let allow_hosts = allow_hosts.clone().unwrap_or_default();
        for name in &allow_hosts {
            host_name(name).map_err(|why| format!("daemon.allow_hosts: {name:?} {why}"))?;
        }
        Ok(Some(Self {
            address,
            tls,
            allow_hosts,
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;

    #[test]
    fn a_listener_is_said_in_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let load = |text: &str| {
            std::fs::write(&file, format!("[daemon]\n{text}")).unwrap();
            Settings::load(Some(&file), None, &Default::default())
        };
        let said = load(
            "listen = \"0.0.0.0:7433\"\ntls_cert = \"/c.pem\"\ntls_key = \"/k.pem\"\nallow_hosts = [\"box.example\"]\n",
        );
        let said = said.unwrap();
        let shown = said.effective.iter().find(|one| one.key == "daemon.listen");
        assert_eq!(shown.unwrap().value, "0.0.0.0:7433");
        let listener = said.listener.unwrap();
        assert_eq!(listener.address.port(), 7433);
        assert_eq!(listener.tls, Some(("/c.pem".into(), "/k.pem".into())));
        assert_eq!(listener.allow_hosts, ["box.example"]);
        assert_eq!(
            load("listen = \"localhost:1\"")
                .unwrap()
                .listener
                .unwrap()
                .tls,
            None
        );
        assert_eq!(load("").unwrap().listener, None);
        for (text, why) in [
            ("listen = \"here\"", "daemon.listen must be an address"),
            ("listen = \"127.0.0.1:0\"", "must name a port"),
            (
                "tls_cert = \"/c\"",
                "daemon.tls_cert belongs to daemon.listen",
            ),
            (
                "allow_hosts = []",
                "daemon.allow_hosts belongs to daemon.listen",
            ),
            ("listen = \"[::1]:1\"\ntls_key = \"/k\"", "belong together"),
            (
                "listen = \"[::1]:1\"\ntls_key = \"k\"\ntls_cert = \"/c\"",
                "from the root on",
            ),
            (
                "listen = \"[::1]:1\"\nallow_hosts = [\"a:1\"]",
                "name of a host",
            ),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        // Whoever opens a folder must not let others in by what lies in it.
        std::fs::remove_file(&file).unwrap();
        let project = folder.path().join(".attache/config.toml");
        std::fs::create_dir(project.parent().unwrap()).unwrap();
        std::fs::write(&project, "[daemon]\nlisten = \"127.0.0.1:7433\"\n").unwrap();
        let loaded = Settings::load(None, Some(folder.path()), &Default::default());
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("may not set daemon.listen"), "{error}");
    }
}
