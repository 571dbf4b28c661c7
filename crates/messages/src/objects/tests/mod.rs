mod common;
mod damage;
mod model;
mod reads;
mod rules;
mod uploads;
