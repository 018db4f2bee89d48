# The machine of the probe: what a kernel does while it starts, in small, so that
# an accelerator that runs a boot sector and no kernel is told from one that runs
# guests. It goes from real to protected to long mode, and then uses what the
# paths of an accelerator differ in: fresh pages, CPUID, port I/O, interrupts and
# their IRET, plain computing, and the timer. At the end it writes DONE to the
# port of isa-debug-exit, which ends QEMU with the status DONE*2+1; whatever goes
# wrong writes a number of its own.
#
# ./assemble makes payload.bin of it; Go embeds that, so that a build of the
# program needs no assembler.

	.set DEBUG_PORT, 0xf4
	.set DONE, 0x10
	.set NO_DISK, 0x11		# the BIOS did not read the rest of the disk
	.set EXCEPTION, 0x12		# an exception, or an interrupt nobody asked for
	.set BAD_PAGE, 0x13		# a page does not hold what was written to it

	.set ORIGIN, 0x7c00		# where a BIOS puts a boot sector
	.set SECTORS, 3			# that follow it

	.set TABLES, 0x100000		# page tables: one of each upper level, then
	.set LEAVES, 32			# so many of the lowest: 64 MiB of 4 KiB pages
	.set IDT, 0x200000
	.set FRESH, 0x800000		# pages that nobody has touched
	.set STACK, 0x90000		# not in a page with code: emulation would translate that anew

	.set PAGES, 3000
	.set CPUIDS, 200
	.set OUTS, 200
	.set INTS, 20000
	.set STEPS, 4000000
	.set TICKS, 10			# of a thousandth of a second

	.text
	.code16
	.globl _start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$ORIGIN, %sp
	ljmp	$0, $read
read:
	movw	$(0x0200 | SECTORS), %ax	# read sectors, from the second on,
	movw	$0x0002, %cx
	movb	$0, %dh
	movw	$(ORIGIN + 512), %bx
	int	$0x13
	movb	$NO_DISK, %al
	jc	say
	cli
	inb	$0x92, %al			# address line 20
	orb	$2, %al
	outb	%al, $0x92
	lgdt	gdtr
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$0x08, $protected
say:
	outb	%al, $DEBUG_PORT
	hlt
	jmp	say

	.balign	8, 0				# 0: assemblers differ in what they fill with
gdt:
	.quad	0
	.quad	0x00cf9a000000ffff		# 0x08: code, 32 bits
	.quad	0x00cf92000000ffff		# 0x10: data
	.quad	0x00af9a000000ffff		# 0x18: code, 64 bits
gdtr:
	.word	. - gdt - 1
	.long	gdt
idtr:
	.word	256 * 16 - 1
	.quad	IDT

	.org	510
	.word	0xaa55

	.code32
protected:
	movw	$0x10, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movl	$STACK, %esp
	pushfl
	pushl	$0x08
	pushl	$tables
	iretl
tables:
	cld
	xorl	%eax, %eax
	movl	$TABLES, %edi
	movl	$(3 * 1024), %ecx
	rep stosl
	movl	$(TABLES + 0x1003), TABLES		# present, writable
	movl	$(TABLES + 0x2003), TABLES + 0x1000
	movl	$(TABLES + 0x3003), %eax
	movl	$(TABLES + 0x2000), %edi
	movl	$LEAVES, %ecx
1:	movl	%eax, (%edi)
	addl	$0x1000, %eax
	addl	$8, %edi
	loop	1b
	movl	$3, %eax				# and the pages, as they are in memory
	movl	$(TABLES + 0x3000), %edi
	movl	$(LEAVES * 512), %ecx
2:	movl	%eax, (%edi)
	movl	$0, 4(%edi)
	addl	$0x1000, %eax
	addl	$8, %edi
	loop	2b

	movl	%cr4, %eax
	orl	$0x20, %eax				# PAE
	movl	%eax, %cr4
	movl	$TABLES, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx			# EFER: long mode
	rdmsr
	orl	$0x100, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$0x80000000, %eax			# paging
	movl	%eax, %cr0
	ljmpl	$0x18, $long

	.code64
long:
	movl	$IDT, %edi				# every gate leads to exception, but two
	movl	$256, %ecx
	movl	$exception, %eax
1:	call	gate
	loop	1b
	movl	$(IDT + 0x20 * 16), %edi
	movl	$tick, %eax
	call	gate
	movl	$(IDT + 0x80 * 16), %edi
	movl	$called, %eax
	call	gate
	lidt	idtr

	movb	$0x11, %al				# interrupts begin at 0x20 and 0x28,
	outb	%al, $0x20
	outb	%al, $0xa0
	movb	$0x20, %al
	outb	%al, $0x21
	movb	$0x28, %al
	outb	%al, $0xa1
	movb	$4, %al
	outb	%al, $0x21
	movb	$2, %al
	outb	%al, $0xa1
	movb	$1, %al
	outb	%al, $0x21
	outb	%al, $0xa1
	movb	$0xfe, %al				# of the timer only,
	outb	%al, $0x21
	movb	$0xff, %al
	outb	%al, $0xa1
	movb	$0x34, %al				# which counts 1193 of its 1193182 Hz
	outb	%al, $0x43
	movb	$(1193 & 0xff), %al
	outb	%al, $0x40
	movb	$(1193 >> 8), %al
	outb	%al, $0x40
	xorl	%ebp, %ebp				# ticks so far
	sti

	movl	$2, %r8d				# twice: the second time the pages are known
pages:
	movl	$FRESH, %edi
	movl	$PAGES, %ecx
1:	movq	%rdi, 8(%rdi)
	addq	$0x1000, %rdi
	loop	1b
	movq	%cr3, %rax				# forget translations
	movq	%rax, %cr3
	movl	$FRESH, %edi
	movl	$PAGES, %ecx
2:	movb	$BAD_PAGE, %al
	cmpq	%rdi, 8(%rdi)
	jne	end
	addq	$0x1000, %rdi
	loop	2b
	decl	%r8d
	jnz	pages

	movl	$CPUIDS, %edi
1:	xorl	%eax, %eax
	cpuid
	decl	%edi
	jnz	1b

	movl	$OUTS, %ecx
1:	outb	%al, $0x80
	loop	1b

	movl	$INTS, %ecx
1:	int	$0x80
	loop	1b

	movl	$STEPS, %ecx
	movl	$1, %eax
	movl	$step, %ebx
1:	call	*%rbx
	decl	%ecx
	jnz	1b

1:	hlt						# until the timer has ticked often enough
	cmpl	$TICKS, %ebp
	jb	1b
	movb	$DONE, %al
end:
	outb	%al, $DEBUG_PORT
	cli
	hlt
	jmp	end

# gate writes the interrupt gate at rdi that leads to eax, and goes to the next.
gate:
	movw	%ax, (%rdi)
	movw	$0x18, 2(%rdi)
	movw	$0x8e00, 4(%rdi)
	movw	$0, 6(%rdi)				# all code is below 64 KiB
	movq	$0, 8(%rdi)
	addq	$16, %rdi
	ret

# step computes, uses memory, and returns: what most of a kernel's time is.
step:
	pushq	%rcx
	imull	$1664525, %eax, %eax
	addl	$1013904223, %eax
	movl	%eax, %edx
	shrl	$10, %edx
	andl	$0xff8, %edx
	xorl	%eax, FRESH(%rdx)
	popq	%rcx
	ret

tick:
	pushq	%rax
	incl	%ebp
	movb	$0x20, %al
	outb	%al, $0x20
	popq	%rax
	iretq
called:
	iretq
exception:
	movb	$EXCEPTION, %al
	jmp	end

	.org	512 * (1 + SECTORS)
