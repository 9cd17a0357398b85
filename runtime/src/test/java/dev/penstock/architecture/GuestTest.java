package dev.penstock.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import dev.penstock.runtime.launch.Interrupts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The library is a guest in the process of its program. */
class GuestTest {
    @Test
    void theLibraryNeitherEndsItsProcessNorTakesItsSignalsOrTerminal() throws IOException {
        JavaClasses library;
        try (Stream<Path> files = Files.list(Path.of("target/classes/dev/penstock"))) {
            library =
                    new ClassFileImporter()
                            .importPaths(files.filter(Files::isRegularFile).toList());
        }

        noClasses()
                .that()
                .resideInAPackage("dev.penstock")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("dev.penstock.runtime.cli..")
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(Interrupts.class)
                .orShould()
                .callMethod(System.class, "exit", int.class)
                .orShould()
                .callMethod(Runtime.class, "exit", int.class)
                .orShould()
                .callMethod(Runtime.class, "halt", int.class)
                .orShould()
                .callMethod(Runtime.class, "addShutdownHook", Thread.class)
                .check(library);
    }
}
