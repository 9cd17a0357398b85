/**
 * How nodes of a cluster prove their identity to each other: an authority that makes certificates
 * ({@link dev.penstock.runtime.certificates.CertificateAuthority}) and the TLS that checks them on
 * both ends of every connection ({@link dev.penstock.runtime.certificates.NodeTls}).
 */
@NullMarked
package dev.penstock.runtime.certificates;

import org.jspecify.annotations.NullMarked;
