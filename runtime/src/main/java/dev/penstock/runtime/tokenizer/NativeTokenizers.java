package dev.penstock.runtime.tokenizer;

import ai.djl.huggingface.tokenizers.jni.TokenizersLibrary;
import dev.penstock.cuda.libraries.NativeFiles;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Hugging Face's tokenizers, a native library that comes in DJL's jar. Only the binding is used,
 * not the classes around it: those look for graphics cards, fetch other builds of the library from
 * the network, and report each use to their makers. The library is unpacked below {@code
 * java.io.tmpdir} (class {@link NativeFiles}); nothing is downloaded.
 */
final class NativeTokenizers {
    private static final Cleaner CLEANER = Cleaner.create();

    private NativeTokenizers() {}

    /** One tokenizer of the library; safe to share. It is freed when nobody has it any more. */
    static final class Handle {
        private final long address;

        private Handle(long address) {
            this.address = address;
        }

        /** Returns the tokens, without those that a model wants before and after its input. */
        int[] encode(String text) {
            try {
                long encoding = TokenizersLibrary.LIB.encode(address, text, false);
                try {
                    long[] ids = TokenizersLibrary.LIB.getTokenIds(encoding);
                    int[] tokens = new int[ids.length];
                    for (int i = 0; i < ids.length; i++) {
                        tokens[i] = (int) ids[i];
                    }
                    return tokens;
                } finally {
                    TokenizersLibrary.LIB.deleteEncoding(encoding);
                }
            } finally {
                // the cleaner must not free it while the library is at work
                java.lang.ref.Reference.reachabilityFence(this);
            }
        }
    }

    /**
     * Makes a tokenizer of a whole {@code tokenizer.json}.
     *
     * @throws TokenizerFileException if the library refuses it, or there is none for this machine
     */
    static Handle open(Path file, String json) {
        load(file);
        long address;
        try {
            address = TokenizersLibrary.LIB.createTokenizerFromString(json);
        } catch (RuntimeException e) {
            throw new TokenizerFileException(
                    file,
                    "a tokenizer that Hugging Face's library takes",
                    String.valueOf(e.getMessage()),
                    "the file is damaged, or of a later version");
        }
        // they belong to the model that the file was once used with, not to the tokens of a text
        TokenizersLibrary.LIB.disableTruncation(address);
        TokenizersLibrary.LIB.disablePadding(address);
        Handle handle = new Handle(address);
        CLEANER.register(handle, () -> TokenizersLibrary.LIB.deleteTokenizer(address));
        return handle;
    }

    /** Loading it again costs little. */
    private static void load(Path file) {
        try {
            var files = new NativeFiles(Path.of(System.getProperty("java.io.tmpdir", "/tmp")));
            System.load(files.unpack(resource()).toString());
        } catch (IOException | UnsupportedOperationException | LinkageError e) {
            throw new TokenizerFileException(
                    file,
                    "a machine on which Hugging Face's library can be loaded",
                    String.valueOf(e.getMessage()),
                    "if nothing may be run from its folder, name another with"
                            + " -Djava.io.tmpdir=, or use a vocab.json with its merges.txt");
        }
    }

    private static String resource() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").equals("aarch64") ? "aarch64" : "x86_64";
        String folder = (system.contains("mac") ? "osx-" : "linux-") + machine;
        return "/native/lib/%s/cpu/libtokenizers.%s"
                .formatted(folder, system.contains("mac") ? "dylib" : "so");
    }
}
