package dev.penstock.cuda.device;

import java.nio.file.Path;

/** A native library that was looked for on this machine. */
public sealed interface NativeLibrary {
    /** It loads from this file. */
    record Found(String version, Path file) implements NativeLibrary {}

    /** It does not load, and why: one sentence. */
    record Missing(String reason) implements NativeLibrary {}
}
