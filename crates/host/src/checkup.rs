//! A look at a model as a run with these settings would use it, for `doctor`.

use std::path::Path;

use attache_engine::Environment;
use attache_engine::parts::{Finding, Providers, checkup};

use crate::settings::Settings;

/// Asks a model for a word; scripts are loaded and not asked. The findings end with the first that is not as it should
/// be.
pub async fn check_model(
    settings: &Settings,
    environment: &Environment,
    folder: &Path,
    model: &str,
) -> Vec<Finding> {
    let variables = environment.clone();
    let providers = settings.providers.iter();
    let providers = providers.map(|provider| provider.with_key(environment));
    let providers = Providers::new(
        move |name| variables.get(name).map(str::to_owned),
        providers.collect(),
    )
    .with_terms(settings.terms.clone())
    .with_script_folder(folder);
    let found = match providers.resolve(model) {
        Ok(found) => found,
        Err(error) => {
            return vec![Finding {
                what: "set up",
                ok: false,
                detail: error.to_string(),
                hint: None,
            }];
        }
    };
    if matches!(found.provider(), "scripted" | "echo") {
        return vec![Finding {
            what: "set up",
            ok: true,
            detail: "needs no provider".to_owned(),
            hint: None,
        }];
    }
    checkup(&found).await
}
