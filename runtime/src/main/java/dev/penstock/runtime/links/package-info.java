/**
 * What links mean for the time of a step: tensors under way as long as a configuration's emulated
 * links carry them, the time that it takes to code them, and the codec that makes a step fastest.
 */
@NullMarked
package dev.penstock.runtime.links;

import org.jspecify.annotations.NullMarked;
