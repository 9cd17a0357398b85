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

    static void place() throws IOException {
        String name = "libJCudaDriver-" + JCudaVersion.get() + "-linux-x86_64.so";
        Path folder = Path.of(System.getProperty("java.io.tmpdir", "/tmp"));
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
        }
    }
}
