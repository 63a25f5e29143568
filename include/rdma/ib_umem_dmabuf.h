/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Memory regions on dma-bufs: an importer for RDMA drivers.
 *
 * Names and meaning are those that newer kernels have in rdma/ib_umem.h.
 */

#ifndef _RDMA_IB_UMEM_DMABUF_H
#define _RDMA_IB_UMEM_DMABUF_H

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/scatterlist.h>
#include <linux/types.h>
#include <rdma/ib_umem.h>

/**
 * enum ib_umem_dmabuf_contract - what importer and exporter promise each other
 * @IB_UMEM_DMABUF_DYNAMIC: the exporter may move the memory at any time; the
 *	driver's move_notify makes the device stop, and the driver maps again
 * @IB_UMEM_DMABUF_PINNED: the memory stays where it is until release
 * @IB_UMEM_DMABUF_REVOCABLE: as pinned, but the exporter may take it away once
 */
enum ib_umem_dmabuf_contract {
	IB_UMEM_DMABUF_DYNAMIC,
	IB_UMEM_DMABUF_PINNED,
	IB_UMEM_DMABUF_REVOCABLE,
};

/**
 * struct ib_umem_dmabuf_layout - what a mapping says about page sizes
 * @skew: bus address less position in the window, of the first run
 * @border: position at which the second run begins, or 0 if there is none
 * @odd: bits in which the skew or the border of another run differs from these
 * @end: bus address behind the last run
 *
 * A run is a stretch of the window without a gap on the bus.
 */
struct ib_umem_dmabuf_layout {
	u64 skew;
	u64 border;
	u64 odd;
	u64 end;
};

/**
 * struct ib_umem_dmabuf - a window of a dma-buf, imported for an RDMA device
 * @umem: what drivers walk: sg_head and nmap describe the mapped window in
 *	whole pages, address is the window's offset in the dma-buf
 * @dmabuf: the dma-buf; a reference is held until release
 * @attach: the attachment; NULL while dma_buf_dynamic_attach() runs
 * @sgt: the exporter's table while mapped, else NULL
 * @first_sg: first entry of @sgt that the window touches
 * @last_sg: last entry of @sgt that the window touches
 * @first_sg_offset: bytes cut from the front of @first_sg
 * @last_sg_trim: bytes cut from the end of @last_sg
 * @layout: which page sizes fit
 * @ops: the driver's attach ops (dynamic only)
 * @pinned_revoke: the driver's revoke callback (revocable only)
 * @private: the driver's, for its callbacks
 * @contract: which of the three promises holds
 * @pinned: the exporter's pin is held
 * @charged: the pin counts against the administrator's bound
 * @revoked: the memory is gone for good
 * @ready: the exporter's fences have been waited for since the last map
 * @maps: how often the window was mapped
 * @moves: how often the exporter announced a move
 * @map_errors: how often mapping it failed
 *
 * Everything from @sgt on is protected by the reservation lock of @dmabuf;
 * ib_umem_dmabuf_query() reads a snapshot without it.
 *
 * **Never give &ib_umem_dmabuf.umem to ib_umem_release()**: on kernels without
 * their own dma-buf umem that function takes every umem for pinned user pages,
 * follows the mm pointer (which is NULL here) and unpins pages that nobody
 * pinned.  ib_umem_dmabuf_release() is the one way to let go.
 */
struct ib_umem_dmabuf {
	struct ib_umem umem;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	struct scatterlist *first_sg;
	struct scatterlist *last_sg;
	unsigned long first_sg_offset;
	unsigned long last_sg_trim;
	struct ib_umem_dmabuf_layout layout;
	const struct dma_buf_attach_ops *ops;
	void (*pinned_revoke)(void *priv);
	void *private;
	enum ib_umem_dmabuf_contract contract;
	bool pinned;
	bool charged;
	bool revoked;
	bool ready;
	u64 maps;
	u64 moves;
	u64 map_errors;
};

/**
 * struct ib_umem_dmabuf_info - snapshot of an import, for resource tracking
 * @exporter: name of the exporter; valid as long as the import
 * @inode: inode number of the dma-buf, as fstat() shows it to its users
 * @size: bytes in the dma-buf
 * @offset: first byte of the window
 * @length: bytes in the window
 * @contract: see &enum ib_umem_dmabuf_contract
 * @peer2peer: the exporter may hand out memory of its own device
 * @mapped: the device has addresses for it
 * @pinned: the exporter may not move it
 * @revoked: it is gone for good
 * @maps: how often it was mapped
 * @moves: how often the exporter announced a move
 * @map_errors: how often mapping it failed
 */
struct ib_umem_dmabuf_info {
	const char *exporter;
	u64 inode;
	u64 size;
	u64 offset;
	u64 length;
	enum ib_umem_dmabuf_contract contract;
	bool peer2peer;
	bool mapped;
	bool pinned;
	bool revoked;
	u64 maps;
	u64 moves;
	u64 map_errors;
};

/**
 * struct ib_umem_dmabuf_run - a stretch of the window without a gap
 * @dma: bus address of its first byte
 * @length: bytes in it
 * @pos: bytes of the window before it
 * @sg: private to ib_umem_dmabuf_next_run()
 */
struct ib_umem_dmabuf_run {
	u64 dma;
	u64 length;
	u64 pos;
	struct scatterlist *sg;
};

/**
 * enum ib_umem_dmabuf_pin_policy - the administrator's word on pinning
 * @IB_UMEM_DMABUF_PIN_AUTO: drivers pin where they cannot follow a move
 * @IB_UMEM_DMABUF_PIN_PREFER: drivers pin even where they could follow one
 * @IB_UMEM_DMABUF_PIN_NEVER: drivers pin nothing; a static exporter still keeps
 *	what is attached to in place
 */
enum ib_umem_dmabuf_pin_policy {
	IB_UMEM_DMABUF_PIN_AUTO,
	IB_UMEM_DMABUF_PIN_PREFER,
	IB_UMEM_DMABUF_PIN_NEVER,
};

/**
 * to_ib_umem_dmabuf - the import that a umem is part of
 * @umem: the umem member of a &struct ib_umem_dmabuf
 *
 * Return: the containing structure.
 */
static inline struct ib_umem_dmabuf *to_ib_umem_dmabuf(struct ib_umem *umem)
{
	return container_of(umem, struct ib_umem_dmabuf, umem);
}

#if IS_ENABLED(CONFIG_INFINIBAND_UMEM_DMABUF)

struct ib_umem_dmabuf *ib_umem_dmabuf_get(struct ib_device *device,
					  unsigned long offset, size_t size,
					  int fd, int access,
					  const struct dma_buf_attach_ops *ops);
struct ib_umem_dmabuf *ib_umem_dmabuf_get_pinned(struct ib_device *device,
						 unsigned long offset,
						 size_t size, int fd,
						 int access);
struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_with_dma_device(struct ib_device *device,
					  struct device *dma_device,
					  unsigned long offset, size_t size,
					  int fd, int access);
struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_revocable_and_lock(struct ib_device *device,
					     unsigned long offset, size_t size,
					     int fd, int access);
void ib_umem_dmabuf_set_revoke_locked(struct ib_umem_dmabuf *umem_dmabuf,
				      void (*revoke)(void *priv), void *priv);
void ib_umem_dmabuf_revoke_lock(struct ib_umem_dmabuf *umem_dmabuf);
void ib_umem_dmabuf_revoke_unlock(struct ib_umem_dmabuf *umem_dmabuf);
void ib_umem_dmabuf_revoke(struct ib_umem_dmabuf *umem_dmabuf);
int ib_umem_dmabuf_map_pages(struct ib_umem_dmabuf *umem_dmabuf);
int ib_umem_dmabuf_map_pages_timeout(struct ib_umem_dmabuf *umem_dmabuf,
				     long timeout);
void ib_umem_dmabuf_unmap_pages(struct ib_umem_dmabuf *umem_dmabuf);
void ib_umem_dmabuf_release(struct ib_umem_dmabuf *umem_dmabuf);
void ib_umem_dmabuf_query(const struct ib_umem_dmabuf *umem_dmabuf,
			  struct ib_umem_dmabuf_info *info);

bool ib_umem_dmabuf_next_run(const struct ib_umem_dmabuf *umem_dmabuf,
			     struct ib_umem_dmabuf_run *run);
u64 ib_umem_dmabuf_find_best_pgsz(const struct ib_umem_dmabuf *umem_dmabuf,
				  u64 pgsz_bitmap, u64 iova);

struct dma_buf *ib_umem_dmabuf_get_window(struct ib_device *device, int fd,
					  u64 offset, u64 length);
int ib_umem_dmabuf_refuse(struct ib_device *device, const char *layer,
			  long err);
enum ib_umem_dmabuf_pin_policy ib_umem_dmabuf_pin_policy(void);
int ib_umem_dmabuf_charge_pin(struct ib_device *device, struct dma_buf *dmabuf);
void ib_umem_dmabuf_uncharge_pin(struct dma_buf *dmabuf);

#else /* CONFIG_INFINIBAND_UMEM_DMABUF */

static inline struct ib_umem_dmabuf *
ib_umem_dmabuf_get(struct ib_device *device, unsigned long offset, size_t size,
		   int fd, int access, const struct dma_buf_attach_ops *ops)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned(struct ib_device *device, unsigned long offset,
			  size_t size, int fd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_with_dma_device(struct ib_device *device,
					  struct device *dma_device,
					  unsigned long offset, size_t size,
					  int fd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_revocable_and_lock(struct ib_device *device,
					     unsigned long offset, size_t size,
					     int fd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void
ib_umem_dmabuf_set_revoke_locked(struct ib_umem_dmabuf *umem_dmabuf,
				 void (*revoke)(void *priv), void *priv)
{
}

static inline void
ib_umem_dmabuf_revoke_lock(struct ib_umem_dmabuf *umem_dmabuf)
{
}

static inline void
ib_umem_dmabuf_revoke_unlock(struct ib_umem_dmabuf *umem_dmabuf)
{
}

static inline void ib_umem_dmabuf_revoke(struct ib_umem_dmabuf *umem_dmabuf)
{
}

static inline int ib_umem_dmabuf_map_pages(struct ib_umem_dmabuf *umem_dmabuf)
{
	return -EOPNOTSUPP;
}

static inline int
ib_umem_dmabuf_map_pages_timeout(struct ib_umem_dmabuf *umem_dmabuf,
				 long timeout)
{
	return -EOPNOTSUPP;
}

static inline void
ib_umem_dmabuf_unmap_pages(struct ib_umem_dmabuf *umem_dmabuf)
{
}

static inline void ib_umem_dmabuf_release(struct ib_umem_dmabuf *umem_dmabuf)
{
}

static inline void
ib_umem_dmabuf_query(const struct ib_umem_dmabuf *umem_dmabuf,
		     struct ib_umem_dmabuf_info *info)
{
	*info = (struct ib_umem_dmabuf_info){};
}

static inline bool
ib_umem_dmabuf_next_run(const struct ib_umem_dmabuf *umem_dmabuf,
			struct ib_umem_dmabuf_run *run)
{
	return false;
}

static inline u64
ib_umem_dmabuf_find_best_pgsz(const struct ib_umem_dmabuf *umem_dmabuf,
			      u64 pgsz_bitmap, u64 iova)
{
	return 0;
}

static inline enum ib_umem_dmabuf_pin_policy ib_umem_dmabuf_pin_policy(void)
{
	return IB_UMEM_DMABUF_PIN_NEVER;
}

#endif /* CONFIG_INFINIBAND_UMEM_DMABUF */

#endif /* _RDMA_IB_UMEM_DMABUF_H */
