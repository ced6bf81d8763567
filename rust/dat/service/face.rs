// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a consumer sees of a service point.

use super::Point;
use crate::{
    dat::{
        ia::Ia,
        objects::Noun, //
    },
    model::code::DatResult,
};
use kernel::sync::Arc;

/// What a consumer sees of a service point.
pub(in crate::dat) trait Face: Noun {
    /// Of this service point.
    fn new(point: Arc<Point>) -> DatResult<Arc<Self>>;

    /// The service point.
    fn point(&self) -> &Arc<Point>;
}

impl Point {
    /// Takes the face with this handle from the consumer, and closes its service point.
    ///
    /// Connections stay, and requests that have arrived can still be answered.
    pub(in crate::dat) fn free<T: Face>(ia: &Ia, handle: u64) -> DatResult {
        let face = ia.objects().take::<T>(handle, |_| Ok(()))?;
        face.point().shutdown();
        Ok(())
    }
}

/// Defines a face: its documentation, and a name that is its census kind's as well.
macro_rules! face {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        pub(crate) struct $name {
            point: kernel::sync::Arc<$crate::dat::service::Point>,
            _counted: $crate::sys::census::Counted,
        }

        impl $crate::dat::service::Face for $name {
            fn new(
                point: kernel::sync::Arc<$crate::dat::service::Point>,
            ) -> $crate::model::code::DatResult<kernel::sync::Arc<Self>> {
                use $crate::sys::census::{
                    Counted,
                    Kind, //
                };
                let _counted = Counted::new(Kind::$name);
                let this = Self { point, _counted };
                Ok(kernel::sync::Arc::new(this, kernel::alloc::flags::GFP_KERNEL_ACCOUNT)?)
            }

            fn point(&self) -> &kernel::sync::Arc<$crate::dat::service::Point> {
                &self.point
            }
        }
    };
}
pub(in crate::dat) use face;
