/** What all commands share: arguments, exit codes, and how failures and misuse are answered. */
@NullMarked
package dev.penstock.runtime.cli.command;

import org.jspecify.annotations.NullMarked;
