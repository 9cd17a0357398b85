/**
 * oneDNN through java.lang.foreign: the two libraries are taken out of the {@code
 * org.bytedeco:dnnl} jar, and only products are bound. Start with {@link
 * dev.penstock.cuda.onednn.OneDnn}.
 */
@NullMarked
package dev.penstock.cuda.onednn;

import org.jspecify.annotations.NullMarked;
