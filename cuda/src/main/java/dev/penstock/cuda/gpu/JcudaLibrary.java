package dev.penstock.cuda.gpu;

import dev.penstock.cuda.libraries.NativeFiles;
import java.io.IOException;
import java.nio.file.Path;
import jcuda.JCudaVersion;

/**
 * JCuda's native library. JCuda itself would unpack it to a fixed name in the temporary folder, and
 * load whatever is there already: half a file where two JVMs start together, and on a machine with
 * other users whatever one of them has put there. So it is unpacked to a private folder, and JCuda
 * is shown that one.
 */
final class JcudaLibrary {
    private static final String FOLDER = "java.io.tmpdir";

    private JcudaLibrary() {}

    /**
     * To be called before JCuda's first class is.
     *
     * @throws UnsatisfiedLinkError if the library does not load: in one line, not in JCuda's many
     */
    static void load() throws IOException {
        load(Path.of(System.getProperty(FOLDER, "/tmp")));
    }

    static void load(Path folder) throws IOException {
        Path library = place(folder).toAbsolutePath();
        System.load(library.toString());
        String before = System.getProperty(FOLDER);
        System.setProperty(FOLDER, String.valueOf(library.getParent()));
        try {
            Class.forName("jcuda.driver.JCudaDriver"); // looks for the library there
        } catch (ClassNotFoundException e) {
            throw new NoClassDefFoundError(e.getMessage());
        } finally {
            if (before == null) {
                System.clearProperty(FOLDER);
            } else {
                System.setProperty(FOLDER, before);
            }
        }
    }

    /** Unpacks the library to a folder in this one that only this user can write to. */
    static Path place(Path folder) throws IOException {
        return new NativeFiles(folder)
                .unpack("/lib/libJCudaDriver-" + JCudaVersion.get() + "-linux-x86_64.so");
    }
}
