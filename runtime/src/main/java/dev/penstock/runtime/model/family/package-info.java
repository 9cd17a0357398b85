/**
 * Families of models as other programs know them: what {@code config.json} says, what tensors are
 * called in files and how they lie there. One file per family; nothing else knows families.
 */
@NullMarked
package dev.penstock.runtime.model.family;

import org.jspecify.annotations.NullMarked;
