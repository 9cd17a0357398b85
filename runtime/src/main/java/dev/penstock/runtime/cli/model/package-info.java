/** Commands about models in any form: inspect. */
@NullMarked
package dev.penstock.runtime.cli.model;

import org.jspecify.annotations.NullMarked;
