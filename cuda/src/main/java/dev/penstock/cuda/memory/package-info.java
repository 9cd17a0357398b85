/**
 * The accounting of device memory, whoever owns the bytes: scopes with limits that know their
 * buffers. Start with {@link dev.penstock.cuda.memory.AccountedScope}.
 */
@NullMarked
package dev.penstock.cuda.memory;

import org.jspecify.annotations.NullMarked;
