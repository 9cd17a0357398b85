package dev.penstock.cuda.gpu;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import jcuda.JCudaVersion;

/**
 * JCuda unpacks its library to a fixed name in the temporary folder, not atomically, and takes the
 * file if it is there: two JVMs that start together can load half a file. So the whole file is put
 * there first, under another name and then renamed.
 */
final class JcudaLibrary {
    private JcudaLibrary() {}

    /**
     * To be called before JCuda's first class is.
     *
     * @throws UnsatisfiedLinkError if the library does not load: in one line, not in JCuda's many
     */
    static void load() throws IOException {
        load(Path.of(System.getProperty("java.io.tmpdir", "/tmp")));
    }

    static void load(Path folder) throws IOException {
        System.load(place(folder).toAbsolutePath().toString());
    }

    private static Path place(Path folder) throws IOException {
        String name = "libJCudaDriver-" + JCudaVersion.get() + "-linux-x86_64.so";
        try (InputStream in = JcudaLibrary.class.getResourceAsStream("/lib/" + name)) {
            if (in == null) {
                throw new IOException("there is no /lib/" + name + " on the class path");
            }
            byte[] library = in.readAllBytes();
            Path file = folder.resolve(name);
            if (!Files.isRegularFile(file) || Files.size(file) != library.length) {
                Path whole = Files.createTempFile(folder, name, ".part");
                try {
                    Files.write(whole, library);
                    Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE);
                } finally {
                    Files.deleteIfExists(whole);
                }
            }
            return file;
        }
    }
}
