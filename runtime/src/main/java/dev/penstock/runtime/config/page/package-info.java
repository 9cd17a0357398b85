/** All keys as text and as a page of the documentation. */
@NullMarked
package dev.penstock.runtime.config.page;

import org.jspecify.annotations.NullMarked;
