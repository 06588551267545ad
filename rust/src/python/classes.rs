//! Frozen Python classes whose fields are the arguments of a kernel.

/// Defines Python classes (`$Class`) that keep the objects they are made of; for each a struct of the same fields (`$Held`),
/// borrowed while a kernel reads them; and an enum of these structs (`$Any`), which is extracted from an object of any of the
/// classes. For another object the error is `$wrong` and its type.
macro_rules! classes {
    (
        $options:tt $(#[$about:meta])* $Any:ident, $wrong:literal:
        $($Class:ident as $Held:ident($Variant:ident) { $($field:ident: $Type:ty),* })*
    ) => {
        $(
            #[pyclass $options]
            pub(super) struct $Class {
                $($field: Py<PyAny>,)*
            }

            #[pymethods]
            impl $Class {
                /// An object with these fields, which are checked when a kernel reads them.
                #[new]
                fn new($($field: Py<PyAny>,)*) -> Self {
                    $Class { $($field,)* }
                }
            }

            pub(super) struct $Held<'py> {
                $($field: $Type,)*
            }

            impl<'py> FromPyObject<'_, 'py> for $Held<'py> {
                type Error = PyErr;

                /// Borrows the fields of an object of the class; an error names the field. `any` is that object, and `class`
                /// has its fields.
                fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                    let class = any.cast::<$Class>()?.get();
                    Ok($Held {
                        $($field: super::arrays::named(class.$field.bind(any.py()), stringify!($field))?,)*
                    })
                }
            }
        )*

        $(#[$about])*
        pub(super) enum $Any<'py> {
            $($Variant($Held<'py>),)*
        }

        impl<'py> FromPyObject<'_, 'py> for $Any<'py> {
            type Error = PyErr;

            /// Borrows the fields of an object of any of the classes; an error for another object. `any` is that object.
            fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                $(
                    if any.is_instance_of::<$Class>() {
                        return any.extract().map($Any::$Variant);
                    }
                )*
                Err(super::arrays::malformed(format!("{}, got {}", $wrong, any.get_type())))
            }
        }
    };
}
pub(super) use classes;
