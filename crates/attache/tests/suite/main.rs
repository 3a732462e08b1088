//! Walks through the product with the true binary, as a person or a script would.

mod bad_input;
mod commands;
mod demo;
mod house;
mod life;
mod providers;
mod stub;
