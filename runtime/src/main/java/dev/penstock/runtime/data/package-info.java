/**
 * The data on which a run trains: text or prepared tokens, split into training and held-out parts
 * and handed out in a fixed order that depends only on the seed and the step. Start with {@link
 * dev.penstock.runtime.data.BatchSource}.
 */
@NullMarked
package dev.penstock.runtime.data;

import org.jspecify.annotations.NullMarked;
